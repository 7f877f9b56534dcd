package org.example.lantern.condition;

import java.util.Locale;
import org.example.lantern.message.Message;

/** Some value of a header contains a text, whatever the case. */
public record HeaderContains(String name, String text) implements Condition {

    @Override
    public boolean holds(Message message) {
        String wanted = text.toLowerCase(Locale.ROOT);
        return message.header(name).stream().anyMatch(value -> value.toLowerCase(Locale.ROOT).contains(wanted));
    }
}

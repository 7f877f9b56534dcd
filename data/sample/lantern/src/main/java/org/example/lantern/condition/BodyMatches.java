package org.example.lantern.condition;

import java.util.regex.Pattern;
import org.example.lantern.message.Message;

/** The body has a match of a pattern somewhere. */
public record BodyMatches(Pattern pattern) implements Condition {

    public static BodyMatches of(String regex) {
        return new BodyMatches(Pattern.compile(regex, Pattern.CASE_INSENSITIVE));
    }

    @Override
    public boolean holds(Message message) {
        return pattern.matcher(message.body()).find();
    }
}

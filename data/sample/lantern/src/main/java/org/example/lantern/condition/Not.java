package org.example.lantern.condition;

import org.example.lantern.message.Message;

/** The opposite of another condition. */
public record Not(Condition inner) implements Condition {

    @Override
    public boolean holds(Message message) {
        return !inner.holds(message);
    }
}

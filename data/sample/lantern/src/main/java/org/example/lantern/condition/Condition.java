package org.example.lantern.condition;

import org.example.lantern.message.Message;

/** A test that a message passes or fails. */
@FunctionalInterface
public interface Condition {

    boolean holds(Message message);
}

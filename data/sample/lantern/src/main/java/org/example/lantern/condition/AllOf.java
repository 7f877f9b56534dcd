package org.example.lantern.condition;

import java.util.List;
import org.example.lantern.message.Message;

/** Every one of several conditions; with none, always true. */
public record AllOf(List<Condition> parts) implements Condition {

    public AllOf {
        parts = List.copyOf(parts);
    }

    @Override
    public boolean holds(Message message) {
        return parts.stream().allMatch(part -> part.holds(message));
    }
}

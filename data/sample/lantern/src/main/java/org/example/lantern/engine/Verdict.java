package org.example.lantern.engine;

import java.util.List;
import org.example.lantern.rule.Action;

/** Where a message goes, and the tags it collected. */
public record Verdict(Action action, List<String> tags) {

    static final Action KEEP = new Action(Action.Kind.MOVE, "inbox");

    @Override
    public String toString() {
        String where = action.kind() == Action.Kind.DISCARD ? "discard" : "move " + action.argument();
        return tags.isEmpty() ? where : where + " [" + String.join(", ", tags) + "]";
    }
}

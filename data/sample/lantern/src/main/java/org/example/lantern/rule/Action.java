package org.example.lantern.rule;

/** What a rule does; an action other than a tag ends the search. */
public record Action(Kind kind, String argument) {

    public enum Kind {
        MOVE,
        TAG,
        DISCARD
    }

    public boolean isFinal() {
        return kind != Kind.TAG;
    }
}

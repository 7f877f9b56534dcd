package org.example.lantern.rule;

import org.example.lantern.condition.Condition;

/** A condition, and the action to take when it holds. */
public record Rule(int line, Condition condition, Action action) {}

package org.example.lantern.engine;

import java.util.ArrayList;
import java.util.List;
import org.example.lantern.message.Message;
import org.example.lantern.rule.Rule;

/** Applies rules in order until one with a final action fires. */
public final class Filter {

    private final List<Rule> rules;

    public Filter(List<Rule> rules) {
        this.rules = List.copyOf(rules);
    }

    public Verdict judge(Message message) {
        List<String> tags = new ArrayList<>();
        for (Rule rule : rules) {
            if (!rule.condition().holds(message)) {
                continue;
            }
            if (rule.action().isFinal()) {
                return new Verdict(rule.action(), tags);
            }
            tags.add(rule.action().argument());
        }
        return new Verdict(Verdict.KEEP, tags);
    }
}

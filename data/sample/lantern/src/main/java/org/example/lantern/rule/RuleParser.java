package org.example.lantern.rule;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.example.lantern.condition.*;

/** Parses rules, one a line: {@code when TEST [and TEST]... then ACTION}. */
public final class RuleParser {

    private static final Pattern WORD = Pattern.compile("\"([^\"]*)\"|(\\S+)");

    private final List<String> words = new ArrayList<>();
    private final int line;
    private int next;

    private RuleParser(int line, String text) {
        this.line = line;
        Matcher matcher = WORD.matcher(text);
        while (matcher.find()) {
            words.add(matcher.group(1) != null ? matcher.group(1) : matcher.group(2));
        }
    }

    public static List<Rule> parse(String text) {
        List<Rule> rules = new ArrayList<>();
        int number = 0;
        for (String line : text.lines().toList()) {
            number++;
            if (!line.isBlank() && !line.startsWith("#")) {
                rules.add(new RuleParser(number, line).rule());
            }
        }
        return rules;
    }

    private Rule rule() {
        expect("when");
        List<Condition> tests = new ArrayList<>();
        do {
            tests.add(test());
        } while (accept("and"));
        expect("then");
        Action action = action();
        if (next < words.size()) {
            throw error("unexpected '" + words.get(next) + "'");
        }
        return new Rule(line, tests.size() == 1 ? tests.get(0) : new AllOf(tests), action);
    }

    private Condition test() {
        if (accept("not")) {
            return new Not(test());
        }
        if (accept("header")) {
            String name = take();
            expect("contains");
            return new HeaderContains(name, take());
        }
        expect("body");
        expect("matches");
        try {
            return BodyMatches.of(take());
        } catch (PatternSyntaxException bad) {
            throw error(bad.getDescription());
        }
    }

    private Action action() {
        String verb = take();
        return switch (verb) {
            case "move" -> new Action(Action.Kind.MOVE, take());
            case "tag" -> new Action(Action.Kind.TAG, take());
            case "discard" -> new Action(Action.Kind.DISCARD, "");
            default -> throw error("unknown action '" + verb + "'");
        };
    }

    private boolean accept(String word) {
        boolean found = next < words.size() && words.get(next).equals(word);
        next += found ? 1 : 0;
        return found;
    }

    private void expect(String word) {
        if (!accept(word)) {
            throw error("expected '" + word + "'");
        }
    }

    private String take() {
        if (next == words.size()) {
            throw error("the rule ends too early");
        }
        return words.get(next++);
    }

    private IllegalArgumentException error(String what) {
        return new IllegalArgumentException("line " + line + ": " + what);
    }
}

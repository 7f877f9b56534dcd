package org.example.lantern;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.example.lantern.condition.*;
import org.example.lantern.engine.Filter;
import org.example.lantern.message.Message;
import org.example.lantern.message.MessageReader;
import org.example.lantern.rule.Rule;
import org.example.lantern.rule.RuleParser;
import org.junit.jupiter.api.Test;

class LanternTest {

    private static final Message MESSAGE = MessageReader.read(
            "Subject: Your\r\n  Invoice for May\r\nReceived: one\r\nReceived: two\r\n\r\nPlease pay 40.\r\n");

    @Test
    void foldedAndRepeatedHeadersAreRead() {
        assertEquals(List.of("Your Invoice for May"), MESSAGE.header("SUBJECT"));
        assertEquals(List.of("one", "two"), MESSAGE.header("Received"));
        assertEquals("Please pay 40.\n", MESSAGE.body());
    }

    @Test
    void aRuleBecomesConditions() {
        List<Rule> rules = RuleParser.parse("# money\nwhen header subject contains \"for may\" then tag may\n");
        assertEquals(new HeaderContains("subject", "for may"), rules.get(0).condition());
        assertEquals(2, rules.get(0).line());
        assertTrue(new AllOf(List.of()).holds(MESSAGE));
    }

    @Test
    void theFirstFinalActionWins() {
        Filter filter = new Filter(RuleParser.parse("""
                when body matches "pay \\d+" then tag bill
                when not header subject contains invoice then discard
                when header subject contains invoice and body matches please then move accounts
                when body matches pay then discard
                """));
        assertEquals("move accounts [bill]", filter.judge(MESSAGE).toString());
        assertEquals("discard", filter.judge(MessageReader.read("Subject: hello\n\nhi")).toString());
        assertEquals("move inbox", new Filter(List.of()).judge(MESSAGE).toString());
    }

    @Test
    void badRulesNameTheirLine() {
        for (String rule : List.of("when", "when body matches ( then discard", "when body matches a then fly")) {
            Exception error = assertThrows(IllegalArgumentException.class, () -> RuleParser.parse("\n" + rule));
            assertTrue(error.getMessage().startsWith("line 2: "), error.getMessage());
        }
    }
}

package org.example.lantern;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.example.lantern.engine.Filter;
import org.example.lantern.message.Message;
import org.example.lantern.message.MessageReader;
import org.example.lantern.rule.RuleParser;

/** Command line: judge the message on standard input by a file of rules. */
public final class Lantern {

    private Lantern() {}

    public static void main(String[] args) throws IOException {
        if (args.length != 1) {
            System.err.println("usage: lantern RULES < MESSAGE");
            System.exit(2);
        }
        try {
            Filter filter = new Filter(RuleParser.parse(Files.readString(Path.of(args[0]))));
            byte[] input = System.in.readAllBytes();
            Message message = MessageReader.read(new String(input, StandardCharsets.UTF_8));
            System.out.println(filter.judge(message));
        } catch (IllegalArgumentException error) {
            System.err.println("lantern: " + error.getMessage());
            System.exit(1);
        }
    }
}

package org.example.lantern.message;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Reads the header block and body of a message, joining folded header lines. */
public final class MessageReader {

    private MessageReader() {}

    public static Message read(String text) {
        String plain = text.replace("\r\n", "\n");
        int blank = plain.startsWith("\n") ? 0 : plain.indexOf("\n\n");
        String head = blank < 0 ? plain : plain.substring(0, blank);
        String body = blank < 0 ? "" : plain.substring(blank).replaceFirst("^\n{1,2}", "");
        Map<String, List<String>> headers = new HashMap<>();
        for (String line : head.replaceAll("\n[ \t]+", " ").split("\n")) {
            int colon = line.indexOf(':');
            if (colon > 0) {
                String name = line.substring(0, colon).strip().toLowerCase(Locale.ROOT);
                headers.computeIfAbsent(name, key -> new ArrayList<>()).add(line.substring(colon + 1).strip());
            }
        }
        return new Message(headers, body);
    }
}

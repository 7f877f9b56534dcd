package org.example.lantern.message;

import java.util.List;
import java.util.Locale;
import java.util.Map;

/** A message: its headers, by lower-case name, and its body. */
public record Message(Map<String, List<String>> headers, String body) {

    public Message {
        headers = Map.copyOf(headers);
    }

    /** Every value of a header, in the order they came. */
    public List<String> header(String name) {
        return headers.getOrDefault(name.toLowerCase(Locale.ROOT), List.of());
    }
}

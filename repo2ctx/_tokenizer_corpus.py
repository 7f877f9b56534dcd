"""Texts on which a tokenizer is tried when it is loaded: code in many languages, many scripts, what trips pre-tokenizers."""

# A character for each byte that UTF-8 can have: all of one and of two bytes, and one for each first byte of three and of four.
EVERY_BYTE = (
    *map(chr, range(0x800)),
    *(chr(max(0x800, first << 12)) for first in range(16)),
    *(chr(max(0x10000, first << 18)) for first in range(5)),
)

TEXTS = (
    # Code
    "def add(a, b):\n    return a + b  # sum\n\n\nclass Größe(Exception):\n\t'''It isn't.'''\n\tx: int = 0x1F_FF\n",
    'int main(void) {\r\n\tprintf("%d\\n", 1 << 20);\r\n\treturn 0;\r\n}\r\n#define MAX(a,b) ((a)>(b)?(a):(b))\r\n',
    'package main\n\nimport (\n\t"fmt"\n)\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Println(`a\\b`, i)\n\t}\n}\n',
    "impl<'a, T: Debug + 'a> Node<'a, T> {\n    fn get(&'a self) -> Option<&'a T> { self.0.as_ref()?.get() }\n}\n",
    "export const f = async ({a = 1, ...rest}) => `${a}px`?.replace(/\\s+/g, '') ?? null;\n// don't, we'll, I'VE, they'Re\n",
    "public final class A<T> extends B {\n    @Override public String toString() { return \"it's\" + '\\u00e9'; }\n}\n",
    'namespace A.B;\npublic record P(int X, string? Y) { public static P operator +(P a, P b) => new(a.X + b.X, $@"{a}"); }\n',
    "class Note < ApplicationRecord\n  scope :recent, -> { where('at > ?', 3.days.ago) }\n  def t = @t ||= \"n/a\"\nend\n",
    "<?php\n$x = ['a' => 1, 'b' => [2, 3]];\nforeach ($x as $k => $v) { echo \"$k: {$v}\\n\"; }\n?>\n<p class=\"x\">it's</p>\n",
    "SELECT a.id, COUNT(*) FROM a LEFT JOIN b ON a.id=b.a_id WHERE a.t>='2020-01-01T00:00:00.000Z' GROUP BY 1;\n",
    'all: $(OBJS)\n\t@$(CC) -o $@ $^ \\\n\t  -lm\n.PHONY: all\n#!/bin/sh\nfor f in *.c; do echo "${f%.c}" >&2; done\n',
    '{"a": [1, 2.50, -3e-10, true, null], "b": {"c\\u0041": "1234567890123"}}\n',
    # Numbers
    "0 1 12 123 1234 12345 123456 1234567 3.14159 1,000,000 2²³ ½ ⅷ ٣٤٥ १२३ ７８９ x1 1x  12   34\t56\n7",
    # Blanks and line ends
    " leading and trailing  \t\n \n",
    "a\n\n\n b\r\n\r\n\tc \r\r\n   \n\t\n  d\f\v e\u00a0\u00a0f\u2003g\u3000h\u2028i\u2029j\u0085k\u200bl\ufeffm\n   ",
    "\n    if x:\n        y = 1\n            z\n  \n \n\n\n\n        ",
    "a" * 300 + " " * 300 + "=" * 300 + "\n" * 50 + "\t" * 40 + "-" * 80 + " x" * 40,
    # Contractions
    "I'm you're he's we've they'll I'd don't 'tis DON'T IT'S I'Ll ’s ’t 's't're 'ſ 'S 'RE'VE \u0130'd o'clock rock'n'roll'''s\n",
    # Scripts
    "Grüße, 世界! Καλημέρα — “quotes” … Привет мир, Добър ден; שלום עולם, مرحبا بالعالم، हिन्दी में, বাংলা, ไทยไม่มีช่องว่าง\n",
    "日本語のテキスト、ｶﾀｶﾅ、한국어 텍스트 각, Tiếng Việt nhiều dấu, ქართული, Հայերեն, አማርኛ, தமிழ், မြန်မာ, ខ្មែរ, ᏣᎳᎩ\n",
    "e\u0301 a\u0323\u0302 u\u0308\u0301 \u1100\u1161\u11a8 \u0958 \u212b \u2126 \ufb01\n",
    "q\u0307\u0323 n\u0303o \u0f71\u0f72 ǅ ǈ ᾈ ª º ʰ\n",
    "𝒳𝓎 𝟘𝟙 𐍈𐌰 𠜎𠜱 🇩🇪🇫🇷 👩‍👩‍👧 👍🏽 ✔️ ☺︎ #️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ∀x∈ℝ: ⌈x⌉ ≥ −∞ ╔══╗ ░▒▓ →⇒ ©®™ §¶ €£¥₿ \ue000\n",
    # Signs
    "!@#$%^&*()_+-=[]{}|;':\",./<>?`~ a//b /* c */ <!-- d --> ```e``` --f-- \\g\\ ::h:: //\n//// ;;\n}}\r\n)))\n\n",
    "x = [1,2,3]; y={'k':0.5} ; print ( x , y ) !\n",
    "\u0000\u0001\u0007\u001b[31m\u007f\u0080\u009f\u00ad\ufffd\ufffe\uffff\n",
    "\U000f0001 \U0010ffff \U00011de1\n",
    "<|endoftext|> <s></s> [INST] <|im_start|>user\n<tool_call>{}</tool_call><repo_name>a<file_sep>\n",
)

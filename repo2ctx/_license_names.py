"""SPDX expressions out of what people write: identifiers in any case, deprecated ones, names, trove classifiers, URLs.

Identifiers are those of the SPDX list that `packaging` carries. A name is told only if it leaves no choice: "Apache 2" does,
"BSD" or "GPL" does not. Linear in the text, which is at most `_LONGEST` characters.
"""

from __future__ import annotations

import re

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

PERMISSIVE = (
    "0BSD",
    "Apache-2.0",
    "BlueOak-1.0.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "curl",
    "ISC",
    "MIT",
    "MIT-0",
    "NCSA",
    "PostgreSQL",
    "PSF-2.0",
    "Python-2.0",
    "Unlicense",
    "X11",
    "Zlib",
)
"""Licences that ask for no more than their text and the authors' names to be kept."""

_LONGEST = 300  # characters; longer ones are no names
_GNU = re.compile(r"(A?GPL|LGPL|GFDL)(-\d\.\d)(\+?)", re.IGNORECASE)
_WITH = re.compile(r"GPL-(\d\.\d)-with-([a-z]+)-exception", re.IGNORECASE)
_EXCEPTIONS = {
    ("2.0", "autoconf"): "Autoconf-exception-2.0",
    ("3.0", "autoconf"): "Autoconf-exception-3.0",
    ("2.0", "bison"): "Bison-exception-2.2",
    ("2.0", "classpath"): "Classpath-exception-2.0",
    ("2.0", "font"): "Font-exception-2.0",
    ("2.0", "gcc"): "GCC-exception-2.0",
    ("3.0", "gcc"): "GCC-exception-3.1",
}
_RENAMED = {
    "bsd-2-clause-freebsd": "BSD-2-Clause-Views",
    "bsd-2-clause-netbsd": "BSD-2-Clause",
    "bzip2-1.0.5": "bzip2-1.0.6",
    "ecos-2.0": "GPL-2.0-or-later WITH eCos-exception-2.0",
    "standardml-nj": "SMLNJ",
    "wxwindows": "LGPL-2.0-or-later WITH WxWindows-exception-3.1",
}
_OR = re.compile(r"\s*/\s*|\s++or\s++", re.IGNORECASE)
_TOKEN = re.compile(r"\(|\)|[^\s()]+")

_URLS = {
    "apache.org/licenses/license-2.0": "Apache-2.0",
    "opensource.org/licenses/apache-2.0": "Apache-2.0",
    "opensource.org/licenses/mit": "MIT",
    "opensource.org/licenses/mit-license": "MIT",
    "opensource.org/license/mit": "MIT",
    "opensource.org/licenses/bsd-2-clause": "BSD-2-Clause",
    "opensource.org/licenses/bsd-3-clause": "BSD-3-Clause",
    "mozilla.org/mpl/2.0": "MPL-2.0",
    "eclipse.org/legal/epl-2.0": "EPL-2.0",
    "eclipse.org/legal/epl-v20": "EPL-2.0",
    "eclipse.org/legal/epl-v10": "EPL-1.0",
}
_URL = re.compile(r"https?://(?:www\.)?([^\s?#]+?)(?:\.(?:txt|html?|php))?/?", re.IGNORECASE)

# Names, as `_key` makes them
_PHRASES = [
    (re.compile(rf"\b(?:{said})\b"), short)
    for said, short in [
        ("gnu affero general public|affero general public|gnu agpl|affero gpl", "agpl"),
        ("gnu (?:lesser|library)(?: or (?:lesser|library))? general public|lesser general public|gnu lgpl", "lgpl"),
        ("gnu general public|general public|gnu gpl", "gpl"),
        ("mozilla public", "mpl"),
        ("eclipse public", "epl"),
        ("european union public", "eupl"),
        ("common development and distribution", "cddl"),
        ("new|revised|modified|three clause|3 clause", "3"),
        ("simplified|two clause|2 clause|freebsd", "2"),
        ("creative commons zero", "cc0"),
        ("apache software foundation|asl|al", "apache"),
        ("boost", "bsl boost"),
    ]
]
_IDLE = set(
    "the a license licence licenses licensed under terms of version software public source open foundation".split()
)
_LATER = re.compile(r"\b(?:or|any)(?: any)? (?:later|newer|greater|above)\b|\+")
_NAMES = {
    **dict.fromkeys(("mit", "expat", "mit expat", "expat mit", "mit x11", "x11 mit"), "MIT"),
    **dict.fromkeys(("mit 0", "mit no attribution", "mit no attribution 0"), "MIT-0"),
    **dict.fromkeys(("apache 2", "apache2"), "Apache-2.0"),
    **dict.fromkeys(("bsd 2", "2 bsd"), "BSD-2-Clause"),
    **dict.fromkeys(("bsd 3", "3 bsd"), "BSD-3-Clause"),
    **dict.fromkeys(("bsl boost 1", "bsl boost"), "BSL-1.0"),
    **dict.fromkeys(
        ("cc0", "cc0 1", "cc0 1 universal", "cc0 1 universal domain dedication", "cc0 universal"), "CC0-1.0"
    ),
    **dict.fromkeys(("isc", "isc iscl"), "ISC"),
    **dict.fromkeys(("unlicense",), "Unlicense"),
    **dict.fromkeys(("zlib", "zlib libpng"), "Zlib"),
    **dict.fromkeys(("wtfpl", "wtfpl 2"), "WTFPL"),
    "postgresql": "PostgreSQL",
    "mpl 1.1": "MPL-1.1",
    "mpl 2": "MPL-2.0",
    "epl 1": "EPL-1.0",
    "epl 2": "EPL-2.0",
    "eupl 1.1": "EUPL-1.1",
    "eupl 1.2": "EUPL-1.2",
    "cddl 1": "CDDL-1.0",
    "cddl 1.1": "CDDL-1.1",
    "artistic 2": "Artistic-2.0",
    "business 1.1": "BUSL-1.1",
    "elastic 2": "Elastic-2.0",
    "server side 1": "SSPL-1.0",
    "gpl 2 classpath exception": "GPL-2.0-only WITH Classpath-exception-2.0",
}
_GNU_NAMES = {
    **{f"gpl {n}": f"GPL-{n}.0" for n in (1, 2, 3)},
    **{f"lgpl {n}": f"LGPL-{n}" + ".0" * (len(n) == 1) for n in ("2", "2.1", "3")},
    "agpl 3": "AGPL-3.0",
}


def spdx_of(said: str) -> str:
    """The SPDX expression that a manifest's licence field, a classifier or a URL stands for; "" if it leaves a choice."""
    said = said.strip().strip("\"'").strip()
    if not 0 < len(said) <= _LONGEST:
        return ""
    if said.lower().startswith("license ::"):
        said = said.rpartition("::")[2].strip()
    url = _URL.fullmatch(said)
    if url:
        return _URLS.get(url[1].lower(), "")
    if found := canonical(said) or _by_name(said):
        return found
    parts = [canonical(part) or _by_name(part) for part in _OR.split(said)]
    return joined(parts, "OR") if all(parts) else ""


def canonical(expression: str) -> str:
    """An SPDX expression in the list's case, with current identifiers; "" if it is none, or names one of its own
    (LicenseRef-…)."""
    try:
        found = canonicalize_license_expression(expression)
    except InvalidLicenseExpression:
        return ""
    tokens = [t if t in ("(", ")", "AND", "OR", "WITH") else current(t) for t in _TOKEN.findall(found)]
    if any(t.startswith("LicenseRef-") for t in tokens):
        return ""
    return " ".join(tokens).replace("( ", "(").replace(" )", ")")


def current(name: str) -> str:
    """What an identifier is called now: of GPL-2.0 GPL-2.0-only, of GPL-2.0+ GPL-2.0-or-later; others stay as they are."""
    if gnu := _GNU.fullmatch(name):
        return gnu[1].upper() + gnu[2] + ("-or-later" if gnu[3] else "-only")
    if (special := _WITH.fullmatch(name)) and (exception := _EXCEPTIONS.get((special[1], special[2].lower()))):
        return f"GPL-{special[1]}-only WITH {exception}"
    return _RENAMED.get(name.lower(), name)


def names_in(expression: str) -> list[str]:
    """The identifiers of an expression, each once; one WITH an exception is one."""
    parts = re.split(r" (?:AND|OR) ", expression.replace("(", "").replace(")", ""))
    return list(dict.fromkeys(part for part in parts if part))


def joined(expressions: list[str], operator: str) -> str:
    """Expressions, one or more, joined by AND or OR, each once, in parentheses where they need them."""
    each = list(dict.fromkeys(expressions))
    if len(each) == 1:
        return each[0]
    other = " OR " if operator == "AND" else " AND "
    return f" {operator} ".join(f"({e})" if other in e else e for e in each)


def _by_name(said: str) -> str:
    key = _key(said)
    if key in _NAMES:
        return _NAMES[key]
    if name := _GNU_NAMES.get(_LATER.sub("", key).strip()):
        return current(name + "+" * bool(_LATER.search(key)))
    return ""


def _key(said: str) -> str:
    """Lower case, without idle words, numbers without their zeros, each word once: "GNU GPL, Version 2.0" is `gpl 2`."""
    text = re.sub(r"(?<=[a-z])[\s.]?v(?:er|ersion)?\.?\s*(?=\d)|(?<![a-z])v\.?\s*(?=\d)", " ", said.lower())
    words = re.findall(r"[a-z]+\d*(?![.\d])(?=[^a-z\d]|$)|[a-z]+|\d+(?:\.\d+)*|\+", text)
    text = " ".join(re.sub(r"(\d)(?:\.0)+$", r"\1", word) for word in words)
    for pattern, short in _PHRASES:
        text = pattern.sub(short, text)
    later = _LATER.search(text)
    kept = [word for word in _LATER.sub(" ", text).split() if word not in _IDLE]
    return " ".join(dict.fromkeys(kept)) + (" +" if later else "")

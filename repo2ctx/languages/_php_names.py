"""The full names that the names in a PHP file stand for, and the names that are PHP's own."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from repo2ctx.languages import line, text

_WORD = r"[\w\\\x80-\U0010ffff]+"
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?")
_STATEMENT = re.compile(rf"use\b\s*(?:(function|const)\b\s*)?(?:({_WORD})\s*\{{)?([^}};]*)", re.IGNORECASE)
_ITEM = re.compile(rf"\s*(?:(function|const)\s+)?({_WORD})(?:\s+as\s+({_WORD}))?\s*", re.IGNORECASE)

_CLASSES = frozenset(
    """
    arithmeticerror arrayaccess arrayiterator arrayobject assertionerror attribute backedenum badfunctioncallexception
    badmethodcallexception cachingiterator closure collator countable curlfile dateinterval dateperiod datetime
    datetimeimmutable datetimeinterface datetimezone directoryiterator divisionbyzeroerror domainexception domdocument
    domelement domnode domxpath error errorexception exception fiber filesystemiterator generator invalidargumentexception
    intldateformatter iterator iteratoraggregate iteratoriterator jsonexception jsonserializable lengthexception
    locale logicexception messageformatter normalizer numberformatter outofboundsexception outofrangeexception
    overflowexception override pdo pdoexception pdostatement phptoken rangeexception recursivearrayiterator
    recursivedirectoryiterator recursiveiteratoriterator reflectionclass reflectionenum reflectionexception
    reflectionfunction reflectionmethod reflectionnamedtype reflectionobject reflectionparameter reflectionproperty
    reflector returntypewillchange runtimeexception sensitiveparameter sensitiveparametervalue serializable
    simplexmlelement sodiumexception splfileinfo splfileobject splobjectstorage splpriorityqueue splqueue splstack
    stdclass stringable throwable traversable typeerror underflowexception unexpectedvalueexception unhandledmatcherror
    unitenum valueerror weakmap weakreference xmlreader xmlwriter ziparchive
""".split()
)
_FUNCTIONS = frozenset(
    """
    apache_request_headers array_all array_any array_column array_find array_find_key array_first array_is_list
    array_key_first array_key_last array_last array_replace array_walk_recursive bin2hex boolval cli_set_process_title
    error_clear_last fdiv file_put_contents fpow get_debug_type get_mangled_object_vars get_resource_id getallheaders
    gettext hash_equals hash_hkdf hash_pbkdf2 hex2bin hrtime http_build_query http_response_code idn_to_ascii
    idn_to_utf8 intdiv is_callable is_countable is_iterable iterator_apply json_decode json_encode json_last_error
    json_last_error_msg json_validate lcfirst ldap_escape ob_get_clean openssl_random_pseudo_bytes password_get_info
    password_hash password_needs_rehash password_verify preg_last_error_msg random_bytes random_int
    sapi_windows_vt100_support scandir session_status spl_autoload_register spl_object_hash spl_object_id
    str_contains str_decrement str_ends_with str_increment str_split str_starts_with str_word_count stream_isatty
    utf8_decode utf8_encode uuid_create
""".split()
)
"""Of PHP's own names, those that code is known to declare for the sake of older versions."""
_EXTENSIONS = ("mb_", "iconv_", "ctype_", "grapheme_", "normalizer_", "sodium_", "bcrypt_")


def is_built_in(what: str, name: str) -> bool:
    """Whether a class or function in lower case is PHP's own: what the repository declares stands in for it."""
    if what == "class":
        return name in _CLASSES
    return what == "function" and (name in _FUNCTIONS or name.startswith(_EXTENSIONS)) and "\\" not in name


def fold(what: str, name: str) -> str:
    """The form in which names are compared: only constants tell upper from lower case, after their namespace."""
    if what != "const":
        return name.lower()
    space, slash, short = name.rpartition("\\")
    return space.lower() + slash + short


class Names:
    """What names mean in one file. Namespaces are numbered: 0 is the global one, before any declaration."""

    def __init__(self, spaces: list[Node], uses: list[Node]):
        declared = sorted((n.start_byte, _joined(text(n.child_by_field_name("name")))) for n in spaces)
        self.starts = [start for start, _ in declared]
        self.spaces = ["", *(name for _, name in declared)]
        self.lines: dict[tuple[str, str], int] = {}  # what `use` statements name, and where
        self._aliases: dict[tuple[int, str, str], tuple[str, str]] = {}  # to what, and which full name
        self._leading: set[tuple[str, str]] = set()  # what is the start of a longer name
        for node in uses:
            space, at = self.space(node.start_byte), line(node)
            for what, full, alias in _use(text(node)):
                self._aliases[space, what, fold(what, alias)] = (what, full)
                self.lines.setdefault((what, full), at)

    def space(self, offset: int) -> int:
        return bisect_right(self.starts, offset)

    def declared(self, node: Node) -> str:
        """The full name of what is declared with the name at `node`."""
        return self._inside(self.space(node.start_byte), text(node))

    def full(self, what: str, name: str, space: int) -> tuple[str, str | None]:
        """The full name that a name in the code stands for, and the global name that it may mean instead."""
        if "\\" not in name:
            named = self._aliases.get((space, what, name if what == "const" else name.lower()))
            if named is not None:
                return named[1], None
            inside = self.spaces[space]
            return (f"{inside}\\{name}" if inside else name), (name if inside and what != "class" else None)
        first, _, rest = name.partition("\\")
        if not first:
            return rest, None
        if first.lower() == "namespace":
            return self._inside(space, rest), None
        named = self._aliases.get((space, "class", first.lower()))
        if named is None:
            return self._inside(space, name), None
        self._leading.add(named)
        return f"{named[1]}\\{rest}", None

    def _inside(self, space: int, name: str) -> str:
        return f"{self.spaces[space]}\\{name}".lstrip("\\")

    def unused(self, used: Mapping[tuple[str, str], object]) -> Iterator[tuple[str, str]]:
        """What is imported and not named in code: perhaps in comments only. Starts of longer names do not count:
        they may be namespaces."""
        for key in self.lines:
            if key not in used and key not in self._leading:
                yield key


def _use(statement: str) -> Iterator[tuple[str, str, str]]:
    """What each part of a `use` statement imports: class, function or const, its full name, and its name here."""
    body = statement[3:].strip(" \r\n\t;\\")
    if body.replace("\\", "").isidentifier():  # nearly all
        yield "class", body, body.rpartition("\\")[2]
        return
    matched = _STATEMENT.match(_COMMENT.sub(" ", statement) if "*" in statement or "/" in statement else statement)
    if matched is None:
        return
    kind, prefix, parts = matched.groups()
    for part in parts.split(","):
        item = _ITEM.fullmatch(part)
        if item is not None:
            name = f"{prefix}\\{item[2]}" if prefix else item[2]
            full = "\\".join(step for step in name.split("\\") if step)
            if full:
                yield (kind or item[1] or "class").lower(), full, item[3] or full.rpartition("\\")[2]


def _joined(name: str) -> str:
    """A name without the space that older versions of PHP allow in it."""
    return "".join(name.split())

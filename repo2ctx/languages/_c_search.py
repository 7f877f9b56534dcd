"""The include directories that a C or C++ repository's build files name.

Read without running anything: compile_commands.json (a list for each source, and all of them for headers), `-I` and
its kin in Makefiles, compile_flags.txt and .clangd, include_directories() of CMake and Meson. Literal paths count,
as do the variables that stand for a source folder and those set to a literal; what cannot be known is left out.
A build file speaks for the folder that it lies in and for those below.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from repo2ctx.languages import RepoTree, ancestors, join

_DEEPEST = 64  # folders above one that are looked into
BUILD_FILES = (
    *("compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt", "*.cmake", "meson.build"),
    *("Makefile", "makefile", "GNUmakefile", "Makefile.am", "Makefile.in", "*.mk"),
)

_SYSTEM = """aio alloca ar assert cpio ctype dirent dlfcn elf endian err errno execinfo fcntl features fenv float fmtmsg
fnmatch ftw getopt glob grp iconv ifaddrs inttypes io iso646 langinfo libgen libintl limits link locale malloc math
memory mntent monetary mqueue ndbm netdb nl_types paths poll process pthread pty pwd random regex resolv sched search
semaphore setjmp sgtty shadow signal spawn stdalign stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio
stdlib stdnoreturn string strings stropts syscall sysexits syslog tar termio termios tgmath thread threads time trace
ucontext ulimit uchar unistd util utime utmp utmpx values wait wchar wctype wordexp windows winsock winsock2 ws2tcpip
winbase windef winerror winnt winuser tchar direct conio crtdbg dbghelp intrin immintrin emmintrin xmmintrin arm_neon
cxxabi unwind"""
_SYSTEM_HEADERS = frozenset(f"{name}.h" for name in _SYSTEM.split())
_SYSTEM_PLACES = """arpa asm asm-generic bits bsd gnu linux mach mach-o machine net netinet netinet6 netpacket rpc scsi
sys CoreFoundation Foundation IOKit Security libkern os"""
_SYSTEM_FOLDERS = frozenset(_SYSTEM_PLACES.split())

_TOP = "\0"
"""Starts a path that is relative to the repository's root; no text file's path can hold it by chance."""
_LONGEST = 1000  # characters of a path with its variables replaced; longer ones are not paths

_FLAG = re.compile(
    r"""(?:(?<![^\s"'=\[,(]))(?:-I|-isystem|-iquote|-idirafter|--include-directory=|/I)[ \t]*"""
    r"""("[^"\n]*"|'[^'\n]*'|(?:\$\([^()\n]*\)|[^\s"',\])])+)"""
)
_ASSIGNMENT = re.compile(r"^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*(?::{0,3}|\?)=[ \t]*([^#\n]*)", re.MULTILINE)
_VARIABLE = re.compile(r"\$\(([\w.-]+)\)|\$\{([\w.-]+)\}|@(\w+)@")
_HERE = ("srcdir", "abs_srcdir", "srcroot", "CURDIR", "PWD", "src")
_ABOVE = ("top_srcdir", "abs_top_srcdir", "topdir", "srctree")

_CMAKE_COMMAND = re.compile(
    r"^[ \t]*(set|project|(?:target_)?include_directories)[ \t]*\(([^()]*)\)", re.IGNORECASE | re.MULTILINE
)
_CMAKE_WORDS = frozenset({"SYSTEM", "BEFORE", "AFTER", "PUBLIC", "PRIVATE", "INTERFACE"})
_BUILD_INTERFACE = re.compile(r"\$<BUILD_INTERFACE:([^<>]*)>")
_MESON_CALL = re.compile(r"\binclude_directories\s*\(([^()]*)\)")
_MESON_STRING = re.compile(r"'([^'\n]*)'")
_COMMENT = re.compile(r"#[^\n]*")


class IncludeDirectories:
    """`of(path)`: the directories to search for the file at `path`, nearest build file first."""

    def __init__(self, tree: RepoTree):
        self.tree = tree
        self.by_scope: dict[str, dict[str, None]] = {}
        self.by_file: dict[str, list[str]] = {}
        self._below: dict[str, tuple[str, ...]] = {}
        for pattern in ("Makefile", "makefile", "GNUmakefile", "Makefile.am", "Makefile.in", "*.mk"):
            for path in tree.configs(pattern):
                self._add(posixpath.dirname(path), self._make(path))
        for name in ("compile_flags.txt", ".clangd"):
            for path in tree.configs(name):
                found = (match[1] for match in _FLAG.finditer(tree.text(path) or ""))
                self._add(posixpath.dirname(path), (join(posixpath.dirname(path), f.strip("\"'")) for f in found))
        for path in tree.configs("meson.build"):
            self._add(posixpath.dirname(path), self._meson(path))
        self._cmake()
        for path in tree.configs("compile_commands.json"):
            self._compile_commands(path)
        self.named = frozenset(folder for folders in self.by_scope.values() for folder in folders)

    def _add(self, scope: str, folders: Iterable[str | None]) -> None:
        known = self.by_scope.setdefault(scope, {})
        known.update(dict.fromkeys(f for f in folders if f is not None and f in self.tree.directories))

    def of(self, path: str) -> tuple[str, ...]:
        own = self.by_file.get(path, ())
        return (*own, *self._from_above(posixpath.dirname(path)))

    def _from_above(self, folder: str) -> tuple[str, ...]:
        if folder not in self._below:
            found: dict[str, None] = {}
            for scope in near_ancestors(folder):
                found.update(self.by_scope.get(scope, {}))
            self._below[folder] = tuple(found)
        return self._below[folder]

    def _make(self, path: str) -> Iterator[str | None]:
        folder = posixpath.dirname(path)
        source = (self.tree.text(path) or "").replace("\\\n", " ")
        variables = {name: value.strip() for name, value in _ASSIGNMENT.findall(source)}
        top = next((f for f in near_ancestors(folder) if self._has(f, "configure.ac", "configure.in")), "")
        variables.update(dict.fromkeys(_HERE, f"{_TOP}{folder}/"))
        variables.update(dict.fromkeys(_ABOVE, f"{_TOP}{top}/"))
        for match in _FLAG.finditer(source):
            value = _expand(match[1].strip("\"'").replace("$(shell pwd)", "$(CURDIR)"), variables)
            yield _place(folder, value)
            if path.endswith(".mk"):  # included from above, where its relative paths start
                yield from (_place(above, value) for above in near_ancestors(folder))

    def _has(self, folder: str, *names: str) -> bool:
        return any(posixpath.join(folder, name) in self.tree.paths for name in names)

    def _meson(self, path: str) -> Iterator[str | None]:
        for call in _MESON_CALL.finditer(_COMMENT.sub("", self.tree.text(path) or "")):
            yield from (join(posixpath.dirname(path), literal) for literal in _MESON_STRING.findall(call[1]))

    def _cmake(self) -> None:
        """All CMake files, from the top down: a folder sees what was set in those above it."""
        settings: dict[str, dict[str, str]] = {}
        projects: dict[str, str] = {}
        lists = self.tree.configs("CMakeLists.txt")
        for path in (*lists, *self.tree.configs("*.cmake")):
            listed = next((f for f in near_ancestors(posixpath.dirname(path)) if self._has(f, "CMakeLists.txt")), "")
            folder = posixpath.dirname(path) if path in lists else listed
            above = next((settings[f] for f in near_ancestors(folder) if f in settings), {})
            variables = {"CMAKE_SOURCE_DIR": f"{_TOP}{folder}", **above}
            variables["CMAKE_CURRENT_SOURCE_DIR"] = f"{_TOP}{folder}"
            variables["CMAKE_CURRENT_LIST_DIR"] = f"{_TOP}{posixpath.dirname(path)}"
            variables.update(projects)
            self._add(folder, self._cmake_file(path, folder, variables, projects))
            if path in lists:
                settings[folder] = variables

    def _cmake_file(
        self, path: str, folder: str, variables: dict[str, str], projects: dict[str, str]
    ) -> Iterator[str | None]:
        for match in _CMAKE_COMMAND.finditer(_COMMENT.sub("", self.tree.text(path) or "")):
            command = match[1].lower()
            words = _BUILD_INTERFACE.sub(r"\1", match[2]).replace(";", " ").replace('"', " ").split()
            if not words:
                continue
            if command == "project":
                variables["PROJECT_SOURCE_DIR"] = projects[f"{words[0]}_SOURCE_DIR"] = f"{_TOP}{folder}"
                variables[f"{words[0]}_SOURCE_DIR"] = f"{_TOP}{folder}"
            elif command == "set":
                if len(words) == 2:
                    variables[words[0]] = _expand(words[1], variables)
            else:
                words = words[1:] if command.startswith("target") else words
                yield from (_place(folder, _expand(w, variables)) for w in words if w not in _CMAKE_WORDS)

    def _compile_commands(self, path: str) -> None:
        try:
            entries = json.loads(self.tree.text(path) or "")
        except (ValueError, RecursionError):
            return
        commands = list(_commands(entries))
        files = {name: self._longest_suffix(name) for name, _ in commands}
        roots = Counter(name[: -len(file) - 1] for name, file in files.items() if file)
        root = roots.most_common(1)[0][0] if roots else ""
        known = dict.fromkeys(folder for _, folders in commands for folder in folders)
        mapped = {folder: self._mapped(root, folder) for folder in known}
        for name, folders in commands:
            found = [f for f in (mapped[folder] for folder in folders) if f is not None]
            file = files[name]
            if file:
                self.by_file[file] = list(dict.fromkeys([*self.by_file.get(file, ()), *found]))
            self._add(posixpath.dirname(path), found)
            self._add("", found)

    def _longest_suffix(self, name: str) -> str | None:
        parts = [p for p in name.split("/") if p][-64:]
        return self.tree.first("/".join(parts[start:]) for start in range(len(parts)))

    def _mapped(self, root: str, folder: str) -> str | None:
        """A folder of the machine that compiled, as one of the repository."""
        if folder == root:
            return ""
        if root and folder.startswith(root + "/"):
            return folder[len(root) + 1 :] if folder[len(root) + 1 :] in self.tree.directories else None
        if folder.startswith(("/usr/", "/opt/", "/Library/", "/Applications/")):
            return None
        parts = [p for p in folder.split("/") if p][-64:]
        suffixes = ("/".join(parts[start:]) for start in range(len(parts)))
        return next((s for s in suffixes if s in self.tree.directories), None)


def near_ancestors(folder: str) -> Iterator[str]:
    """The folder itself, then each above it, no more than a person would nest."""
    return islice(ancestors(folder), _DEEPEST + 1)


def _expand(value: str, variables: Mapping[str, str]) -> str:
    """`value` with its known variables replaced; a few rounds, for they may name each other."""
    for _ in range(5):
        if len(value) > _LONGEST or not ("$" in value or "@" in value):
            break
        value = _VARIABLE.sub(lambda m: variables.get(m[1] or m[2] or m[3], m[0])[:_LONGEST], value)
    return value[:_LONGEST]


def _place(folder: str, value: str) -> str | None:
    """The folder that a replaced path means; None if something in it is still unknown."""
    if not value or "$" in value or "@" in value:
        return None
    at = value.rfind(_TOP)
    return join("", "./" + value[at + 1 :].lstrip("/")) if at >= 0 else join(folder, value)


def _commands(entries: object) -> Iterator[tuple[str, list[str]]]:
    """Each entry's file and include directories, as absolute as the entry makes them."""
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            continue
        base = entry["directory"] if isinstance(entry.get("directory"), str) else ""
        arguments, command = entry.get("arguments"), entry.get("command")
        if isinstance(arguments, list):
            command = " ".join(a for a in arguments if isinstance(a, str))
        flags = _FLAG.finditer(command) if isinstance(command, str) else ()
        folders = [posixpath.normpath(posixpath.join(base, flag[1].strip("\"'"))) for flag in flags]
        yield posixpath.normpath(posixpath.join(base, entry["file"])), folders


def is_system_header(name: str) -> bool:
    """Whether the C library, the compiler or the operating system has a header of this bare name."""
    return name in _SYSTEM_HEADERS or not ("." in name or "/" in name)


def is_in_system_folder(name: str) -> bool:
    """Whether such a header may have this name, with a folder."""
    first, slash, _ = name.partition("/")
    return slash != "" and first in _SYSTEM_FOLDERS

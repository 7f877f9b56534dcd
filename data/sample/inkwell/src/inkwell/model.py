"""The one record every other module agrees on."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAG = re.compile(r"(?<!\S)#([\w-]+)")


@dataclass(frozen=True)
class Note:
    key: str
    title: str
    body: str
    tags: frozenset[str] = frozenset()

    @classmethod
    def from_text(cls, key: str, text: str) -> Note:
        """Split a file into its title line and its body, and collect the tags."""
        title, _, body = text.lstrip().partition("\n")
        tags = frozenset(tag.lower() for tag in _TAG.findall(body))
        return cls(key=key, title=title.strip() or key, body=body.strip(), tags=tags)

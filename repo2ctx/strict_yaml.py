"""YAML as configurations are written: safe types alone, and no key twice, of which the last would silently count."""

from __future__ import annotations

from typing import Any

import yaml

_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if (key.tag, key.value) in seen:
                raise yaml.composer.ComposerError(
                    None, None, f"key {key.value!r} stands there twice; leave one out", key.start_mark
                )
            seen.add((key.tag, key.value))
        return node


def read_yaml(text: str) -> Any:
    """The value of a document. Raises yaml.YAMLError, ValueError (a date or number out of range) or RecursionError."""
    return yaml.load(text, _Loader)

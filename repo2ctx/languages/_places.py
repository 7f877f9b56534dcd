"""Which nodes of a syntax tree stand at a place of the text, for many places of one file, in linear time.

The parser's own search starts from the root each time. That is fast in most trees, and takes square time in deep ones
and past the siblings of what a syntax error covers. So a budget of such steps is kept, and once it is used up, the search
goes on from where the last one ended.
"""

from __future__ import annotations

from tree_sitter import Node

_COUNTED = 64
_MOST_STEPS = 2_000_000  # down the tree and past siblings, for one file; the largest that people write take a tenth


class Places:
    """Looks nodes up by byte offsets, best in growing order."""

    def __init__(self, root: Node, most_steps: int = _MOST_STEPS):
        self.root = root
        self._asked = 0
        self._steps = most_steps
        self._restart()

    def _restart(self) -> None:
        self._cursor = self.root.walk()
        self._stack = [self.root]
        self._last = 0
        self._past = False  # whether all children of the stack's last node end before the place

    def node(self, start: int, end: int) -> Node | None:
        """The smallest node that covers the bytes from start to end; None if there is none."""
        if self._steps > 0:
            self._asked += 1
            if self._asked % _COUNTED == 0:
                self._count(start)
            return self.root.descendant_for_byte_range(start, end)
        around = self.around(start)
        return next((node for node in reversed(around) if node.end_byte >= end), None)

    def _count(self, start: int) -> None:
        """Of every few searches, one is counted."""
        cursor = self.root.walk()
        while self._steps > 0 and (outer := cursor.node) is not None:
            number = cursor.goto_first_child_for_byte(start)
            if number is None:
                return
            self._steps -= _COUNTED * (1 + (number // 8 if outer.type == "ERROR" else 0))

    def around(self, offset: int) -> list[Node]:
        """The nodes that cover the byte at an offset, outermost first; the list changes with the next search."""
        if offset < self._last:
            self._restart()
        self._last = offset
        self._leave(offset)
        cursor, stack = self._cursor, self._stack
        while not self._past and stack[-1].start_byte <= offset:
            if cursor.goto_first_child_for_byte(offset) is None:
                break
            assert cursor.node is not None
            stack.append(cursor.node)
        return stack[:-1] if len(stack) > 1 and stack[-1].start_byte > offset else stack

    def _leave(self, offset: int) -> None:
        """Go up until the offset lies before the end of a node; among the children of an error, go on to the next."""
        cursor, stack = self._cursor, self._stack
        while len(stack) > 1 and stack[-1].end_byte <= offset:
            siblings = stack[-2].type == "ERROR"
            while siblings and cursor.goto_next_sibling():
                assert cursor.node is not None
                stack[-1], self._past = cursor.node, False
                if stack[-1].end_byte > offset:
                    return
            cursor.goto_parent()
            stack.pop()
            self._past = siblings

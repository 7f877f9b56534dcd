"""Full-text search over a folder of plain-text notes."""

from .index import InvertedIndex
from .model import Note
from .search import Hit, search

__all__ = ["Hit", "InvertedIndex", "Note", "search"]
__version__ = "0.3.0"

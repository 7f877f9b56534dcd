"""Turn whole repositories into long-context training rows, dependencies first."""

__version__ = "0.1.0"

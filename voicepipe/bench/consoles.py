"""Where a bench prints its tables."""

import sys

from rich.console import Console

WIDTH = 150
"""Columns of a file or a pipe: no table is wider, and none may be cut off there."""


def for_tables() -> Console:
    """As wide as the terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)

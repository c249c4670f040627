"""Where a bench prints its tables."""

import sys

from rich.console import Console

WIDEST = 10_000
"""Columns of a file or a pipe: no table is wider, so that none is cut off there."""


def for_tables() -> Console:
    """As wide as the terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDEST)

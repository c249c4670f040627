"""A tool as slow as a real booking system, for whole PoPs in tests."""

import os
from pathlib import Path
from time import sleep


def book_table(people: int, day: str, time: str) -> str:
    """Takes 2 s."""
    sleep(2)
    if path := os.environ.get("BOOKINGS"):
        Path(path).write_text(f"{people} {day} {time}")
    return f"It is booked for {people}."

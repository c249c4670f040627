"""Tools for whole PoPs in tests: one as slow as a real booking system, and one that needs company."""

import os
from pathlib import Path
from threading import Barrier
from time import sleep

MEETING = Barrier(2)


def book_table(people: int, day: str, time: str) -> str:
    """Takes 2 s."""
    sleep(2)
    if path := os.environ.get("BOOKINGS"):
        Path(path).write_text(f"{people} {day} {time}")
    return f"It is booked for {people}."


def meet(who: str) -> str:
    """Returns once another call of it is under way, too."""
    MEETING.wait(50)
    return f"{who} was there"

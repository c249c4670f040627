"""A tool as slow as a real booking system, for whole PoPs in tests."""

from time import sleep


def book_table(people: int, day: str, time: str) -> str:
    """Takes 2 s."""
    sleep(2)
    return f"It is booked for {people}."

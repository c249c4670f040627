"""The tool of configs/agents/front-desk.toml: an example of what `function = "module:function"` calls."""

import zlib


def book_table(people: int, day: str, time: str) -> str:
    """Pretend to book a table; returns the sentence that confirms it. Equal bookings have equal references."""
    reference = zlib.crc32(f"{people}/{day}/{time}".lower().encode()) % 900 + 100
    return f"It is booked, your reference is {' '.join(str(reference))}."

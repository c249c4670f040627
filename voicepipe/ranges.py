"""Types of configured numbers with the range that each may have; `voicepipe check` tells it to whoever leaves it."""

from typing import Annotated

from msgspec import Meta

Ms = Annotated[int, Meta(ge=0, le=600_000)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
Decibel = Annotated[float, Meta(ge=-96, le=0)]
Gain = Annotated[float, Meta(ge=0, le=96)]
Probability = Annotated[float, Meta(gt=0, lt=1)]
Wait = Annotated[int, Meta(ge=1, le=600_000)]
"""Milliseconds, of something that takes some."""
Speed = Annotated[float, Meta(ge=0.25, le=1.5)]
NAME = r"^[a-z0-9][a-z0-9_-]*$"
IN_WORDS = {NAME: "lower-case letters, digits, - and _"}
"""Patterns as they are told to people."""
Name = Annotated[str, Meta(pattern=NAME)]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]

"""Types of configured numbers with the range that each may have; `voicepipe check` tells it to whoever leaves it."""

from typing import Annotated

from msgspec import Meta

Ms = Annotated[int, Meta(ge=0, le=600_000)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
Decibel = Annotated[float, Meta(ge=-96, le=0)]
Gain = Annotated[float, Meta(ge=0, le=96)]
Probability = Annotated[float, Meta(gt=0, lt=1)]
Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]

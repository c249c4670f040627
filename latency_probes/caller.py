"""The caller's side of one call: what every kind of caller can do, and what it keeps."""

from typing import Protocol

from latency_probes.timeline import Timeline
from voicepipe.audio import Pcm


class Caller(Protocol):
    """Places one call and keeps its timeline. Sound is int16[n] at 24 kHz."""

    timeline: Timeline

    async def dial(self) -> None:
        """Connect, and from then on send a block every 20 ms: the room's noise while nothing is said.

        Raises ProbeError, in one sentence, where the server cannot be reached or refuses the call.
        """

    def say(self, pcm: Pcm) -> int:
        """Say `pcm` over the room's noise from the next block on; returns the position of its first sample in what
        is sent. Returns at once. What was still to be said before is said first."""

    def echo(self, delay_ms: float | None) -> None:
        """From now on, hear what was played `delay_ms` ago come back at -20 dB; None ends it."""

    def worst_lag(self) -> float:
        """The most seconds by which a block left later than its time."""

    def hung_up(self) -> bool:
        """Whether the call has ended, whoever ended it."""

    async def hang_up(self) -> None:
        """End the call. Safe to call twice."""

    async def drop(self) -> None:
        """End without a word to the server, as a program that is killed, or a network that is cut."""

"""What happened in one call, as the caller saw it: blocks sent, audio received, events, each with its time of arrival.

Times are monotonic seconds; positions are samples at 24 kHz, the rate of the Realtime wire in both directions.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import Pcm

WIRE_RATE = 24_000
BLOCK = WIRE_RATE // 50
"""Samples in one block of 20 ms: 480."""
FRAME = WIRE_RATE // 100
"""Samples in the 10 ms by which sound is judged: 240."""
AUDIBLE_DBFS = -45.0
"""A frame above this level is audible (received) or voiced (sent)."""

FLUSHING = "input_audio_buffer.speech_started"
"""The event on which a stock client throws away what it has not played yet."""


@dataclass(frozen=True, slots=True)
class Event:
    """Any message but audio, as decoded from JSON."""

    type: str
    arrived: float
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chunk:
    """The audio of one message."""

    pcm: Pcm
    arrived: float
    plays: float
    """Second at which a client that plays whatever it holds, without a buffer of its own, plays the first sample."""


@dataclass(slots=True)
class Reply:
    """One item of received speech, in order of arrival."""

    item_id: str
    response_id: str
    chunks: list[Chunk] = field(default_factory=list)

    @property
    def pcm(self) -> Pcm:
        """All samples of the item, int16[n]."""
        return np.concatenate([chunk.pcm for chunk in self.chunks]) if self.chunks else np.empty(0, np.int16)

    def frame_times(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For every whole frame of `pcm`: seconds at which its last sample arrived and its first is played."""
        ends = np.cumsum([chunk.pcm.size for chunk in self.chunks])
        frames = np.arange(int(ends[-1]) // FRAME if self.chunks else 0)
        first, last = frames * FRAME, frames * FRAME + FRAME - 1
        at = np.searchsorted(ends, first, side="right")
        starts = ends - [chunk.pcm.size for chunk in self.chunks]
        plays = np.array([chunk.plays for chunk in self.chunks])[at] + (first - starts[at]) / WIRE_RATE
        arrived = np.array([chunk.arrived for chunk in self.chunks])[np.searchsorted(ends, last, side="right")]
        return arrived, plays


@dataclass(slots=True)
class Timeline:
    """One call. `sent[i]` is the second at which block i had been handed to the socket."""

    sent: list[float] = field(default_factory=list)
    replies: dict[str, Reply] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    play_end: float = 0.0
    """Second at which everything received so far has been played."""

    def add_audio(self, item_id: str, response_id: str, pcm: Pcm, arrived: float) -> None:
        """Note audio of an item: int16[n] at 24 kHz."""
        reply = self.replies.setdefault(item_id, Reply(item_id, response_id))
        plays = max(arrived, self.play_end)
        reply.chunks.append(Chunk(pcm, arrived, plays))
        self.play_end = plays + pcm.size / WIRE_RATE

    def add_event(self, event: Event) -> None:
        """Note any other message."""
        self.events.append(event)
        if event.type == FLUSHING:
            self.play_end = min(self.play_end, event.arrived)

    def sent_at(self, position: int) -> float:
        """Second at which the block that holds sample `position` had been handed to the socket."""
        return self.sent[position // BLOCK]

    def of_type(self, *types: str) -> list[Event]:
        """The events of these types, in order of arrival."""
        return [event for event in self.events if event.type in types]

    def busy(self) -> bool:
        """Whether a response was created and is not done."""
        created = {event.data["response"]["id"] for event in self.of_type("response.created")}
        return bool(created - {event.data["response"]["id"] for event in self.of_type("response.done")})

    def transcript(self, item_id: str) -> str:
        """What the server says it spoke in this item: the final text, or the deltas where there is none."""
        done = "response.output_audio_transcript.done"
        events = [event for event in self.of_type(done, done[:-4] + "delta") if event.data.get("item_id") == item_id]
        final = [event for event in events if event.type == done]
        if final:
            return str(final[-1].data.get("transcript", ""))
        return "".join(str(event.data.get("delta", "")) for event in events)


def frame_levels(pcm: Pcm) -> NDArray[np.float64]:
    """Level of every whole 10 ms frame of `pcm` (int16[n] at 24 kHz) in dBFS; -96 for silence."""
    frames = pcm[: pcm.size // FRAME * FRAME].reshape(-1, FRAME).astype(np.float64)
    power: NDArray[np.float64] = np.mean(frames * frames, axis=1) / 32768.0**2
    return 10 * np.log10(np.maximum(power, 10**-9.6))


def voiced_span(pcm: Pcm) -> tuple[int, int]:
    """First voiced sample and the one after the last: frames of 10 ms above -45 dBFS; (0, 0) where none is."""
    voiced = np.flatnonzero(frame_levels(pcm) > AUDIBLE_DBFS)
    return (int(voiced[0]) * FRAME, int(voiced[-1] + 1) * FRAME) if voiced.size else (0, 0)

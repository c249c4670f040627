"""What happened in one call, as the caller saw it: blocks sent, audio received, events, each with its time of arrival.

Times are monotonic seconds; positions are samples at 24 kHz, the rate of the Realtime wire in both directions.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latency_probes.transcripts import is_acknowledgement
from voicepipe.audio import Pcm

WIRE_RATE = 24_000
BLOCK = WIRE_RATE // 50
"""Samples in one block of 20 ms: 480."""
FRAME = WIRE_RATE // 100
"""Samples in the 10 ms by which sound is judged: 240."""
AUDIBLE_DBFS = -45.0
"""A frame above this level is audible (received) or voiced (sent)."""
CREATED = "session.created"
"""The first event of a call."""


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


@dataclass(frozen=True, slots=True)
class Moment:
    """When something was received, and when a client without a buffer of its own plays it."""

    arrived: float
    played: float


@dataclass(slots=True)
class Reply:
    """One item of received speech."""

    item_id: str
    response_id: str
    chunks: list[Chunk] = field(default_factory=list)
    text: str = ""
    """What the server says it spoke: the final transcript, or the deltas where there is none."""
    first_audible: Moment | None = None
    """The first 10 ms frame above -45 dBFS."""
    _judged: int = 0

    @property
    def pcm(self) -> Pcm:
        """All samples of the item, int16[n]."""
        return np.concatenate([chunk.pcm for chunk in self.chunks]) if self.chunks else np.empty(0, np.int16)

    def add(self, chunk: Chunk) -> None:
        """Append audio, and look for the first audible frame while there is none."""
        self.chunks.append(chunk)
        if self.first_audible is None:
            levels = frame_levels(self.pcm[self._judged * FRAME :])
            audible = np.flatnonzero(levels > AUDIBLE_DBFS)
            if audible.size:
                arrived, plays = self.frame_times()
                frame = self._judged + int(audible[0])
                self.first_audible = Moment(float(arrived[frame]), float(plays[frame]))
            self._judged += levels.size

    def frame_times(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """For every whole frame of `pcm`: seconds at which its last sample arrived and its first is played."""
        sizes = np.array([chunk.pcm.size for chunk in self.chunks], np.int64)
        ends = np.cumsum(sizes)
        first = np.arange(int(sizes.sum()) // FRAME) * FRAME
        at = np.searchsorted(ends, first, side="right")
        completed = np.searchsorted(ends, first + FRAME - 1, side="right")
        plays = np.array([chunk.plays for chunk in self.chunks])[at] + (first - (ends - sizes)[at]) / WIRE_RATE
        return np.array([chunk.arrived for chunk in self.chunks])[completed], plays


@dataclass(frozen=True, slots=True)
class Route:
    """What a directory said of where to call, and how often the caller tried until a PoP let them in."""

    pop: str
    url: str
    turn_ms_est: float
    """How long a turn will take, as the directory reckons."""
    degraded: bool
    """It said that no PoP would answer in time."""
    asked: int
    """Times that it was asked."""
    tries: int
    """PoPs that were called."""


@dataclass(slots=True)
class Timeline:
    """One call. `sent[i]` is the second at which block i had been handed to the socket."""

    sent: list[float] = field(default_factory=list)
    replies: dict[str, Reply] = field(default_factory=dict)
    """By item, in order of their first message."""
    events: list[Event] = field(default_factory=list)
    play_end: float = 0.0
    """Second at which everything received so far has been played."""
    began: float = 0.0
    """Second at which the call was asked for."""
    setup: dict[str, float] = field(default_factory=dict)
    """Milliseconds from then on until each of a call's beginnings, where there are such."""
    route: Route | None = None
    """None: no directory was asked."""
    call_id: str = ""
    """As the server names the call; empty: it has not said."""
    _open: set[str] = field(default_factory=set)
    _chunks: list[Chunk] = field(default_factory=list)

    def note_setup(self, step: str) -> None:
        """One of the call's beginnings has happened now; the first time counts."""
        if step not in self.setup:
            self.setup[step] = 1000 * (time.monotonic() - self.began)

    def add_audio(self, item_id: str, response_id: str, pcm: Pcm, arrived: float) -> None:
        """Note audio of an item: int16[n] at 24 kHz."""
        chunk = Chunk(pcm, arrived, max(arrived, self.play_end))
        self._reply(item_id, response_id).add(chunk)
        self._chunks.append(chunk)
        self.play_end = chunk.plays + pcm.size / WIRE_RATE

    def add_event(self, event: Event) -> None:
        """Note any other message."""
        self.events.append(event)
        data = event.data
        match event.type:
            case "response.created":
                self._open.add(data["response"]["id"])
            case "response.done":
                self._open.discard(data["response"]["id"])
            case "response.output_audio_transcript.delta":
                self._reply(data["item_id"], data.get("response_id", "")).text += data["delta"]
            case "response.output_audio_transcript.done":
                self._reply(data["item_id"], data.get("response_id", "")).text = data["transcript"]
            case "input_audio_buffer.speech_started":
                # A stock client throws away what it has not played yet.
                self.play_end = min(self.play_end, event.arrived)

    def _reply(self, item_id: str, response_id: str) -> Reply:
        reply = self.replies.setdefault(item_id, Reply(item_id, response_id))
        reply.response_id = reply.response_id or response_id
        return reply

    def answer(self, after: float) -> Reply | None:
        """The first reply that became audible after the second `after` and does not merely acknowledge."""
        for reply in self.replies.values():
            heard = reply.first_audible
            if heard and heard.arrived > after and not is_acknowledgement(reply.text):
                return reply
        return None

    def busy(self) -> bool:
        """Whether a response was created and is not done."""
        return bool(self._open)

    def transcript(self, item_id: str) -> str:
        """What the server says it spoke in this item; empty where it never did."""
        return self.replies[item_id].text if item_id in self.replies else ""

    def played(self, second: float, samples: int) -> Pcm:
        """What was played from `second` on: int16[samples], silence where nothing was."""
        out = np.zeros(samples, np.int16)
        for chunk in reversed(self._chunks):
            offset = round((chunk.plays - second) * WIRE_RATE)
            if offset + chunk.pcm.size <= 0:
                break
            start, end = max(0, offset), min(samples, offset + chunk.pcm.size)
            if start < end:
                out[start:end] = chunk.pcm[start - offset : end - offset]
        return out

    def sent_at(self, position: int) -> float:
        """Second at which the block that holds sample `position` had been handed to the socket."""
        return self.sent[position // BLOCK]

    def of_type(self, *types: str) -> list[Event]:
        """The events of these types, in order of arrival."""
        return [event for event in self.events if event.type in types]


def frame_levels(pcm: Pcm) -> NDArray[np.float64]:
    """Level of every whole 10 ms frame of `pcm` (int16[n] at 24 kHz) in dBFS; -96 for silence."""
    frames = pcm[: pcm.size // FRAME * FRAME].reshape(-1, FRAME).astype(np.float64)
    power: NDArray[np.float64] = np.mean(frames * frames, axis=1) / 32768.0**2
    level: NDArray[np.float64] = 10 * np.log10(np.maximum(power, 10**-9.6))
    return level


def voiced_span(pcm: Pcm) -> tuple[int, int]:
    """First voiced sample and the one after the last: frames of 10 ms above -45 dBFS; (0, 0) where none is."""
    voiced = np.flatnonzero(frame_levels(pcm) > AUDIBLE_DBFS)
    return (int(voiced[0]) * FRAME, int(voiced[-1] + 1) * FRAME) if voiced.size else (0, 0)

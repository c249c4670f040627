"""Where a turn's milliseconds went: one stamp a hop, and what is derived from them. No clock inside."""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

Hop = Literal[
    "voice_ended",  # arrival of the packet that holds the caller's last voiced sample
    "settle",  # the recogniser is asked for the words
    "words",  # and has them
    "prepare",  # the reply is begun
    "token",  # first token of the model
    "phrase",  # first phrase is cut
    "speech",  # its first sound is ready
    "commit",  # the turn is confirmed, the gate opens
    "audible",  # the first audible sample is handed to the socket
]

LateStep = Literal["", "short", "acknowledge", "fallback", "stall"]


class TurnSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A turn in figures: what clients read in a response's metadata, and all that `observe/` and admission know of the
    turn.

    Times are in ms with one decimal; None: it did not happen. `at_...` count from the caller's last voiced sample. JSON
    leaves out what did not happen. A client's copy may have to be shortened: it keeps the first fields longest.
    """

    turn_latency: float | None = None
    """From the last voiced sample to the first audible one, as DESIGN section 1 defines it."""
    endpoint: float | None = None
    """From the last voiced sample to *commit*."""
    asr: float | None = None
    """From *settle* to the words."""
    llm: float | None = None
    """From *prepare* to the first phrase."""
    tts: float | None = None
    """From the first phrase to its sound."""
    compute: float | None = None
    """From *prepare* to the first sound."""
    playout: float | None = None
    """From *commit* to the first audible sample."""
    at_settle: float | None = None
    at_words: float | None = None
    at_prepare: float | None = None
    at_token: float | None = None
    at_phrase: float | None = None
    at_speech: float | None = None
    at_commit: float | None = None
    at_audible: float | None = None
    turn_id: str = ""
    confident: bool = msgspec.field(default_factory=bool)  # by a factory, so that JSON says False as well
    endpoint_reason: str = ""
    language: str = ""
    """That the caller speaks, BCP 47; empty: the agent speaks one alone."""
    speculation: Literal["", "hit", "miss"] = ""
    discarded: int = 0
    tools_dropped: int = 0
    """Tools that only read which were run for speculations, and whose results no reply has used."""
    ladder: LateStep = ""
    refused: bool = False
    broken: bool = False
    tool: bool = False
    unpaced: bool = False
    by_request: bool = False
    reopened: bool = False
    continues: bool = False
    discarded_ms: float | None = None
    tokens: int = 0
    """Tokens of the reply, or pieces in which a model's server sends them."""
    phrase_tokens: int = 0
    """Tokens that were there when the first phrase was cut."""
    sound_ms: float | None = None
    """Length of the reply's sound that the voice was waited for."""
    voicing_ms: float | None = None
    """How long it was waited for."""
    ducked: int = 0
    """Times that the reply became quieter for a sound that did not interrupt it."""
    held: int = 0
    """Times that it stopped for such a sound, and went on."""


AS_RECORDED = (
    "turn_id", "confident", "language", "speculation", "discarded", "ladder", "refused", "broken", "tool", "unpaced",
    "by_request", "reopened", "continues", "tokens", "phrase_tokens", "ducked", "held", "tools_dropped",
)  # fmt: skip
"""Fields that a summary has as the record has them."""


@dataclass(slots=True)
class TurnRecord:
    """All that is known of one turn. Stamps are monotonic seconds; the first of a kind stands, unless it was
    forgotten."""

    turn_id: str
    response_id: str = ""
    words: str = ""
    answer: str = ""
    stamps: dict[Hop, float] = field(default_factory=dict)
    confident: bool = False
    """The endpointer was sure that the turn was complete."""
    endpoint: str = ""
    """Why it waited as long as it did."""
    language: str = ""
    """As `TurnSummary.language`."""
    speculation: Literal["", "hit", "miss"] = ""
    """Was the reply prepared before the turn was confirmed?"""
    discarded: int = 0
    """Speculations that were dropped: the caller went on, or the words turned out to be others."""
    discarded_ms: float = 0.0
    """How long the engines worked for dropped speculations: from *prepare* to the first speech, or to the end."""
    ladder: LateStep = ""
    """The last step of a late reply (`[ladder]`) that was needed."""
    refused: bool = False
    """The engine does not take such a request: nothing is wrong with the engine."""
    broken: bool = False
    """An engine failed, rather than having too much to do."""
    tool: bool = False
    """A tool of the agent's was run: its time is not the engines'."""
    unpaced: bool = False
    """The input came faster than real time: answered, not measured."""
    by_request: bool = False
    """The client set the silence to wait, or asked for the reply itself: never counted late."""
    reopened: bool = False
    """The reply was a cut-in: the caller went on, and the turn was reopened."""
    continues: bool = False
    """The turn goes on with the one before, whose reply was a cut-in. That one's record may have been sent by then."""
    tokens: int = 0
    phrase_tokens: int = 0
    sound_ms: float = 0.0
    voicing_ms: float = 0.0
    """These four are set once the reply is over, as `TurnSummary` has them."""
    ducked: int = 0
    held: int = 0
    tools_dropped: int = 0
    """Counted as they happen, as `TurnSummary` has them."""

    def stamp(self, hop: Hop, when: float) -> None:
        self.stamps.setdefault(hop, when)

    def forget(self, *hops: Hop) -> None:
        """Drop the stamps of these hops, which are to come again."""
        for hop in hops:
            self.stamps.pop(hop, None)

    def discard(self, now: float, tools_s: float = 0.0) -> None:
        """The speculation was dropped, and its stamps with it. For `tools_s` it waited for tools, not for engines."""
        self.discarded += 1
        worked_s = self.stamps.get("speech", now) - self.stamps.get("prepare", now)
        self.discarded_ms += 1000 * max(0.0, worked_s - tools_s)
        self.forget("prepare", "token", "phrase", "speech")

    def between(self, start: Hop, end: Hop) -> float | None:
        """Milliseconds from `start` to `end`; None if either did not happen."""
        if start not in self.stamps or end not in self.stamps:
            return None
        return (self.stamps[end] - self.stamps[start]) * 1000

    @property
    def latency_ms(self) -> float | None:
        """Turn latency by DESIGN section 1; None if it was not measured."""
        return None if self.unpaced else self.between("voice_ended", "audible")

    def summary(self) -> TurnSummary:
        """The turn's figures so far."""
        stages: dict[str, float | None] = {
            "turn_latency": self.latency_ms,
            "endpoint": self.between("voice_ended", "commit"),
            "asr": self.between("settle", "words"),
            "llm": self.between("prepare", "phrase"),
            "tts": self.between("phrase", "speech"),
            "compute": self.between("prepare", "speech"),
            "playout": self.between("commit", "audible"),
        }
        offsets = {f"at_{hop}": self.between("voice_ended", hop) for hop in self.stamps if hop != "voice_ended"}
        known: dict[str, Any] = {name: round(ms, 1) for name, ms in {**stages, **offsets}.items() if ms is not None}
        return TurnSummary(
            **known,
            **{name: getattr(self, name) for name in AS_RECORDED},
            endpoint_reason=self.endpoint,
            discarded_ms=round(self.discarded_ms, 1) if self.discarded else None,
            sound_ms=round(self.sound_ms, 1) or None,
            voicing_ms=round(self.voicing_ms, 1) or None,
        )

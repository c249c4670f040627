"""The engines as the call path sees them. Protocols, not base classes; one adapter a file.

Engines are shared by all calls of a PoP and batch across them. Every awaitable here may be cancelled at any moment: the
work behind it is then dropped and nothing of it is delivered. No method blocks the event loop for more than 5 ms.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from voicepipe.agent import Agent, ToolSpec
from voicepipe.audio import Pcm
from voicepipe.conversation.prompt import Message, Prompt, ToolCall
from voicepipe.engines.vad_windows import Windows
from voicepipe.languages.written_language import LikelyLanguage
from voicepipe.turn.patience import Patience

__all__ = [
    "Agent", "StreamCorrection", "Asr", "AsrStream", "CanBreak", "CountsDecoders", "Delta", "Engine", "Engines",
    "Hypothesis", "LacksPart", "Llm", "MadeAhead", "Message", "OnPartial", "Prompt", "ReadsIpa", "Restarts", "Speech",
    "ToolCall", "ToolSpec", "Tts", "TurnModel", "TurnStream", "Vad", "Word",
]  # fmt: skip


class Engine(Protocol):
    """An engine of a PoP, shared by all its calls: what detection, recognition, language and synthesis have in common.
    Implemented by every adapter in `engines/`; `loader.py` chooses.
    """

    async def start(self) -> None:
        """Load and warm up, so that the first call costs what the thousandth does. Raises EngineError."""

    async def close(self) -> None:
        """Release workers and memory; pending work is dropped. Safe to call twice."""


@runtime_checkable
class CanBreak(Protocol):
    """An engine that may break for good while others work: its process ends, a call into it hangs, or it only fails.

    Until it works again, to which it sees by itself, requests raise EngineError, mostly EngineDead.
    """

    @property
    def alive(self) -> bool:
        """False from when it broke until it is ready again."""


@runtime_checkable
class Restarts(Protocol):
    """An engine that may break, and starts itself again when it did."""

    @property
    def restarts(self) -> int:
        """How often it has started again, up to now."""


@runtime_checkable
class LacksPart(Protocol):
    """An engine that does without a part of it where that part is not to be had."""

    lacks: str
    """Why the part is lacking, in words; empty: nothing is."""


@runtime_checkable
class CountsDecoders(Protocol):
    """A recogniser that has a number of decoders, each of which belongs to one utterance at a time."""

    @property
    def decoders_in_use(self) -> int:
        """Decoders that belong to an utterance now: none while nobody speaks."""


# --- voice activity ---------------------------------------------------------------------------------------------


class Vad(Engine, Protocol):
    """A voice activity detector: the probability of voice in windows of 32 ms, for all calls together."""

    def stream(self) -> Any:
        """The detector's memory of one call."""

    def probabilities(self, asked: Sequence[tuple[Any, Pcm]]) -> Sequence[float]:
        """The probability (0..1) that each window holds voice. `asked`: pairs of a stream and a window, int16[512] at
        16 kHz. A stream's windows come in order, one at a time."""


# --- the end of a turn ------------------------------------------------------------------------------------------


class TurnStream(Protocol):
    """One utterance, as a turn model hears it."""

    def feed(self, pcm: Pcm) -> None:
        """Take more sound: int16[n] at 16 kHz, n as it comes."""

    async def complete(self) -> float:
        """The probability (0..1) that the turn is complete where the sound ends now. Raises EngineError."""


class TurnModel(Engine, Protocol):
    """An engine that judges by the voice, not by the words, whether the caller has finished."""

    def stream(self) -> TurnStream: ...


# --- speech recognition -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The words of one utterance, as the recogniser has them so far."""

    text: str = ""
    """Lower-case words without punctuation, unless the engine writes it."""
    until: int = 0
    """Samples of this stream (16 kHz) that the text covers."""
    full_stop: float | None = None
    """Probability, in 0..1, that a recogniser which writes punctuation ends a sentence after these words; None: it
    writes none, or does not say."""
    lags: bool = False
    """Words are still missing unless `until` reaches to the end of the voice; they come at its next pause. Nobody
    should prepare a reply to these."""
    language: LikelyLanguage = LikelyLanguage()
    """The language that was heard, one of `AsrHints.languages`; nothing where the recogniser does not tell."""


OnPartial = Callable[[Hypothesis], None]
"""Called on the event loop with a new partial; partials may revise earlier words."""


class AsrStream(Protocol):
    """A recogniser's stream of one utterance. `feed` and `cancel` return at once; nothing is delivered after `finish`
    or `cancel`."""

    def feed(self, pcm: Pcm) -> None:
        """Take more sound: int16[n] at 16 kHz, n as it comes. When the worker is behind, sound waits, and nothing is
        dropped."""

    async def settle(self) -> Hypothesis:
        """The words of everything fed so far, as good as the engine can have them now. The stream goes on.

        Called when a silence begins: this is what speculation uses, and the final if the voice does not come back.
        """

    async def finish(self) -> Hypothesis:
        """The final words. The stream is over."""

    def cancel(self) -> None:
        """Drop the utterance. Safe to call at any time, also twice and after `finish`."""


class AsrHints(NamedTuple):
    """What a call tells the recogniser about an utterance before it hears it. A recogniser may ignore all of it."""

    language: str = "en"
    """BCP 47."""
    asked: str = ""
    """What the agent has said since the caller spoke last: where that asks for digits, some may be expected."""
    vocabulary: tuple[str, ...] = ()
    """Names and words that callers say."""
    eager: bool = False
    """Partials are worth more than usual: tools that only read run on them."""
    languages: tuple[str, ...] = ()
    """BCP 47: those in which the caller may speak, `language` among them, which they spoke before. Empty: in `language`
    alone."""


NO_HINTS = AsrHints()


class Asr(Engine, Protocol):
    """A speech recogniser, for all calls of a PoP."""

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> AsrStream:
        """Begin an utterance."""
        ...


# --- language ---------------------------------------------------------------------------------------------------


class StreamCorrection(Enum):
    """A remark in a language model's stream that is neither text nor a tool call."""

    WITHDRAWN = "withdrawn"
    """All text of this answer up to here was no answer: thoughts, as it turns out. What the caller has not heard of it
    yet is dropped, and a tool that was called in words there is not called."""
    CALL_AS_TEXT = "call as text"
    """The model called a tool in words that its server did not read as a call. They are left out, nothing is run."""


Delta = str | ToolCall | StreamCorrection
"""A piece of text as it is generated (perhaps several tokens, perhaps none yet), a whole tool call, or a correction."""


class Llm(Engine, Protocol):
    """A language model, for all calls of a PoP."""

    def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Stream one reply. Closing the generator (or cancelling its task) aborts the request in the engine.

        Errors come with an item, not from the call: EngineBusy, RequestRefused (both with the first alone), EngineDead,
        EngineStalled, EngineError.
        """

    async def warm(self, prompt: Prompt) -> None:
        """Prepare for prompts that begin like this one: learn the agent, fill the prefix cache."""


@dataclass(frozen=True, slots=True)
class Answering:
    """Which model answers an agent's callers, in words for people."""

    by: str
    """The model's name, such as "llama3.2 at http://127.0.0.1:11434/v1" or "the embedded engine"."""
    lacks: str = ""
    """Why it cannot answer them, and what helps; empty: it can."""


@runtime_checkable
class ChoosesAgents(Protocol):
    """A language model that says which agents' callers it can answer. One that does not say can answer all."""

    def answering(self, agent: Agent) -> Answering: ...


# --- speech synthesis -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word:
    """A word and the sample of its speech at which it has been spoken."""

    text: str
    end: int


@dataclass(frozen=True, slots=True)
class Speech:
    """A piece of a phrase's speech: int16[n] at the engine's rate, without leading silence."""

    pcm: Pcm
    words: tuple[Word, ...] = ()
    """Ends are samples of this piece. Empty: the engine knows no times, the caller estimates."""
    more: bool = False
    """The phrase goes on in the next piece: `words` are those that end in this one, the others come with theirs."""


class Tts(Engine, Protocol):
    """A synthesiser of speech (a voice, or several), for all calls of a PoP."""

    rate: int
    """Sample rate in Hz of the speech."""

    def voices(self) -> Mapping[str, str]:
        """Every name that `voice` may have -> the language that it speaks (BCP 47). Empty before `start`."""

    def voice_for(self, asked: str, language: str = "") -> str:
        """The name of the voice that speaks where `asked` is asked for: the default voice's if there is none of that
        name, or no name. An engine may have a default for each `language` (BCP 47)."""

    def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        """Speech for one phrase, in order. An unknown voice falls back to the default; no text, no speech.

        `first`: a caller hears nothing until it is there; it goes before phrases that continue a reply.
        """


@runtime_checkable
class ReadsIpa(Protocol):
    """A synthesiser that says which of its voices read IPA, a word each between `pronunciation.BEGINS` and `ENDS` in
    the text. One that does not say reads none."""

    def reads_ipa(self, voice: str) -> bool: ...


class MadeAhead(Protocol):
    """Phrases that were made ahead, for all calls of a PoP."""

    def get(self, spoken: str, voice: str, speed: float, rate: int) -> tuple[Speech, ...]:
        """The speech that `Tts.speak` would give, at `rate` Hz; empty: it was not made."""


@dataclass(frozen=True, slots=True)
class Engines:
    """The loaded engines of a PoP."""

    vad: Vad
    asr: Asr
    llm: Llm
    tts: Tts
    turn: TurnModel | None = None
    patience: Patience = field(default_factory=Patience, compare=False)
    """How long to wait for `asr`."""
    made_ahead: MadeAhead | None = field(default=None, compare=False)
    """Phrases that `tts` has made ahead."""
    windows: Windows = field(init=False, compare=False)
    """The windows of all calls that wait for `vad`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "windows", Windows(self.vad))

    def all(self) -> tuple[Engine, ...]:
        """All engines, in the order in which they are loaded and closed."""
        engines = (self.vad, self.asr, self.llm, self.tts)
        return (*engines, self.turn) if self.turn else engines

    @property
    def alive(self) -> bool:
        """Whether all engines can work now."""
        return not self.down()

    def down(self) -> list[str]:
        """The engines that cannot work now, as the configuration calls them: "asr", "llm", "tts"."""
        return [name for name, engine in self._named.items() if isinstance(engine, CanBreak) and not engine.alive]

    def restarts(self) -> dict[str, int]:
        """How often each engine was started again, for those that were."""
        counts = {name: engine.restarts for name, engine in self._named.items() if isinstance(engine, Restarts)}
        return {name: count for name, count in counts.items() if count}

    @property
    def _named(self) -> dict[str, Engine]:
        return {"vad": self.vad, "asr": self.asr, "llm": self.llm, "tts": self.tts}

"""The inputs of the turn machine (facts) and its outputs (actions). `machine.py` has the rules."""

from dataclasses import dataclass
from enum import Enum, auto

# --- facts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VoiceStarted:
    """A fact: a burst of voice began at sample `pos`."""

    pos: int


@dataclass(frozen=True, slots=True)
class MaybeVoice:
    """A fact: over a reply that sounds there may be a voice. NoVoice follows, or VoiceStarted, or both."""


@dataclass(frozen=True, slots=True)
class NoVoice:
    """A fact: what may have been a voice (`MaybeVoice`) was none."""


@dataclass(frozen=True, slots=True)
class VoiceGoesOn:
    """A fact: the burst of voice has lasted `ms`, and its last frame was voiced; also after a silence inside the
    burst."""

    ms: float
    speech: bool = True
    """It is more than a backchannel, and not our echo."""
    hiss_ms: float = 0.0
    """Length of what may have been its first consonant, before it."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A fact: `ms` have passed since the last voiced sample `last`. The detector may doubt that this is no voice:
    `likely`, or `sure`."""

    ms: float
    last: int
    likely: bool = True
    sure: bool = True


@dataclass(frozen=True, slots=True)
class NoSound:
    """A fact: the line has brought nothing for a while, `ms` since the last voiced sample `last`.

    It counts over a reply alone, which would wait for ever for silence that a muted client does not send. A turn that
    ended so would be a cut-in by the network.
    """

    ms: float
    last: int


@dataclass(frozen=True, slots=True)
class Words:
    """A fact: the words of the utterance so far, which SETTLE has asked for, and the silence that they require."""

    text: str
    required_ms: float
    interrupts: bool = False
    """The agent's interrupt list holds them."""
    failed: bool = False
    """The recogniser failed: a voice without words need not be a cough then."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A fact: the recogniser has more words, not final ones."""

    interrupts: bool
    """The stable words are in the agent's interrupt list."""


@dataclass(frozen=True, slots=True)
class Replying:
    """A fact: a reply that the machine did not ask for has begun (the greeting, or `response.create`)."""


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """A fact: the reply has been played, or was ended from outside."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A fact: the client (`input_audio_buffer.commit`) or a key ends the caller's turn here."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """A fact: the client throws away what the caller has said since the last turn."""


Fact = (
    VoiceStarted | MaybeVoice | NoVoice | VoiceGoesOn | Silence | NoSound | Words | Partial | Replying | ReplyEnded
    | Committed | Cleared
)  # fmt: skip

# --- actions ----------------------------------------------------------------------------------------------------


class Action(Enum):
    """What the turn machine has the call do about a fact. Actions are carried out in the order given."""

    OPEN = auto()
    """Start recognising a new utterance."""
    ANNOUNCE = auto()
    """Emit that the caller speaks."""
    SETTLE = auto()
    """Ask for the words so far."""
    GUESS = auto()
    """Prepare the reply to the words so far, if that may be all that the caller says; else drop what was prepared."""
    PREPARE = auto()
    """Start the reply to the words behind a closed gate; one to the same words is kept."""
    DISCARD = auto()
    """The caller goes on: drop the speculation."""
    COMMIT = auto()
    """The utterance is the caller's turn, and joins the conversation."""
    ANSWER = auto()
    """Let the reply to it be heard."""
    REPLY_LATER = auto()
    """The turn is answered later, or when the client asks for that."""
    DROP = auto()
    """Forget the utterance, which was nothing."""
    DROP_OVER = auto()
    """Forget an utterance over a reply, which was nothing. The turn that the reply answers may yet be reopened."""
    DUCK = auto()
    HOLD = auto()
    """Stop playing, ready to go on."""
    RESUME = auto()
    """Full level, from where it stopped."""
    CUT = auto()
    """End the reply, unless it ended by itself; the utterance over it becomes the caller's turn."""
    REOPEN = auto()
    """End the reply, which was a cut-in: the utterance over it belongs to the turn that was committed."""


Actions = tuple[Action, ...]

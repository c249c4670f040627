"""What the turn machine is told (facts), and what it has the call do (actions). `machine.py` has the rules."""

from dataclasses import dataclass
from enum import Enum, auto

# --- facts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VoiceStarted:
    """A burst of voice began at sample `pos`."""

    pos: int


@dataclass(frozen=True, slots=True)
class MaybeVoice:
    """Over a reply that sounds: what may be a voice. NoVoice follows, or VoiceStarted, or both."""


@dataclass(frozen=True, slots=True)
class NoVoice:
    """It was none."""


@dataclass(frozen=True, slots=True)
class VoiceGoesOn:
    """The burst has lasted `ms` and its last frame was voiced; also after a silence inside the burst."""

    ms: float
    speech: bool = True
    """It is more than a hum, and not our echo."""
    hiss_ms: float = 0.0
    """What may have been its first consonant lasted so long before."""


@dataclass(frozen=True, slots=True)
class Silence:
    """`ms` since the last voiced sample `last`. The detector may doubt that this is no voice: `likely`, or `sure`."""

    ms: float
    last: int
    likely: bool = True
    sure: bool = True


@dataclass(frozen=True, slots=True)
class NoSound:
    """The line has brought nothing for a while: `ms` since the last voiced sample `last`. It counts over a reply alone,
    which would wait for ever for silence that a muted client does not send. A turn that ended so would be a cut-in by
    the network."""

    ms: float
    last: int


@dataclass(frozen=True, slots=True)
class Words:
    """The words of the utterance so far, asked for by `Settle`, and the silence that they require."""

    text: str
    required_ms: float
    interrupts: bool = False
    """The agent's interrupt list holds them."""
    failed: bool = False
    """The recogniser failed: that there are no words does not make the voice a cough."""


@dataclass(frozen=True, slots=True)
class Partial:
    """More words, not final."""

    interrupts: bool
    """Those of them that are stable are in the agent's interrupt list."""


@dataclass(frozen=True, slots=True)
class Replying:
    """A reply that the machine did not ask for has begun: the greeting, `response.create`."""


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The reply has been played, or was ended from outside."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The client (`input_audio_buffer.commit`), or a key, ends the caller's turn here."""


@dataclass(frozen=True, slots=True)
class Cleared:
    """The client throws away what the caller has said since the last turn."""


Fact = (
    VoiceStarted | MaybeVoice | NoVoice | VoiceGoesOn | Silence | NoSound | Words | Partial | Replying | ReplyEnded
    | Committed | Cleared
)  # fmt: skip

# --- actions ----------------------------------------------------------------------------------------------------


class Action(Enum):
    """What the call does about it, in the order given."""

    OPEN = auto()
    """Start recognising a new utterance."""
    ANNOUNCE = auto()
    """Tell the outside that the caller speaks."""
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
    """It is answered later, or when the client asks for that."""
    DROP = auto()
    """It was nothing: forget the utterance."""
    DROP_OVER = auto()
    """Likewise, over a reply: the turn that this one answers may yet be reopened."""
    DUCK = auto()
    HOLD = auto()
    """Stop playing, ready to go on."""
    RESUME = auto()
    """Full level, from where it stopped."""
    CUT = auto()
    """End the reply, unless it ended by itself; the utterance over it becomes the caller's turn."""
    REOPEN = auto()
    """End the reply, likewise; it was a cut-in: the utterance over it belongs to the turn that was committed."""


Actions = tuple[Action, ...]

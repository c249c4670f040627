"""What the turn machine knows from the facts so far, and the questions that its rules ask of that. Pure."""

from typing import NamedTuple

import msgspec

from voicepipe.audio import samples_to_ms
from voicepipe.base.ranges import Decibel, Ms
from voicepipe.turn.facts import (
    Action,
    Actions,
    Fact,
    NoSound,
    Partial,
    ReplyEnded,
    Replying,
    Silence,
    VoiceGoesOn,
    VoiceStarted,
    Words,
)


class TurnConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The times and levels by which turns are decided (`[turn]`). Times are in ms."""

    guess_ms: Ms = 10
    """Silence after which the reply is prepared speculatively, to the words that are heard so far."""
    prepare_ms: Ms = 60
    """Silence after which the words are asked for; other words than those of the guess: the reply is prepared anew."""
    wordless_ms: Ms = 1000
    """Silence after voice without words: it was a cough, or it is answered with "I did not catch that"."""
    wordless_voice_ms: Ms = 700
    """Voice at least this long deserves an answer even without words."""
    pause_ms: Ms = 200
    """Voice over a reply for so long pauses it. It is ducked at once."""
    cut_ms: Ms = 600
    """Voice over a reply for so long is an interruption, and ends it. No backchannel does."""
    duck_db: Decibel = -15.0
    """How much quieter a ducked reply is, in dB: one level, be the sound over it a voice or a noise that may be one."""
    resume_ms: Ms = 300
    """Silence after which a reply that was not cut goes on."""
    reopen_ms: Ms = 1000
    """A caller who speaks again this soon after their last voiced sample had not finished: the turn is reopened."""
    reopen_voice_ms: Ms = 300
    """The reply stops at once, but it takes so much voice to drop it; after a backchannel or our echo it goes on."""


class TurnPermissions(NamedTuple):
    """What turns may do now, by the client's settings and by what the call waits for."""

    answers: bool = True
    """Turns lead to replies, without the client's asking."""
    interrupts: bool = True
    """Voice may end a reply."""
    ends: bool = True
    """Silence may end a turn, else only the client's commit does."""
    reads: bool = False
    """The agent has tools that only read, and may run while the caller speaks."""


class TurnState:
    """What the turn machine of one call knows: `note` each fact, ask, and `follow` what was decided. All questions are
    about the caller's latest voice."""

    def __init__(self, config: TurnConfig) -> None:
        self._config = config
        self._may = TurnPermissions()
        self._voice = VoiceGoesOn(0)
        self._silence: Silence | None = None
        """The latest since the state changed: words that come late need not wait for the next."""
        self._words: Words | None = None
        """The words that SETTLE brought; they stand until the voice comes back."""
        self._guessed = False
        self._stop_word = False
        self._answered_last: int | None = None
        """The last voiced sample of the turn that the present reply answers, until that reply is over."""
        self._belongs_before = False
        self._turn_first = False

    def note(self, fact: Fact, may: TurnPermissions) -> None:
        """Take in what a fact says of the voice and its words, and what turns may do now."""
        self._may = may
        match fact:
            case VoiceStarted(pos=pos):
                last, self._voice, self._turn_first = self._answered_last, VoiceGoesOn(0), False
                self._belongs_before = last is not None and samples_to_ms(pos - last) <= self._config.reopen_ms
            case VoiceGoesOn():
                self._voice, self._guessed = fact, False
            case Silence():
                self._silence = fact
            case NoSound(ms=ms, last=last):
                self._silence = Silence(ms, last)
            case Words():
                self._words, self._stop_word = fact, fact.interrupts
            case Partial():
                self._stop_word = fact.interrupts

    def follow(self, fact: Fact, do: Actions) -> None:
        """Take in what is done about the fact."""
        if Action.GUESS in do:
            self._guessed = True
        if Action.ANSWER in do and self._silence:
            self._answered_last = self._silence.last
        ended = isinstance(fact, ReplyEnded)
        if ended or isinstance(fact, Replying) or Action.CUT in do or Action.REOPEN in do:
            self._answered_last = None
            # A voice during which the reply ended by itself may still be the rest of the turn before.
            self._belongs_before = self._belongs_before and ended
        if isinstance(fact, Replying) and Action.DUCK in do:
            self._turn_first = True

    def enter(self, *, in_pause: bool) -> None:
        """The machine enters another state. Words count as long as the voice pauses."""
        self._silence = None
        if not in_pause:
            self._words, self._guessed = None, False

    # What the client's settings allow.

    def answers(self) -> bool:
        return self._may.answers

    def interruptible(self) -> bool:
        return self._may.interrupts

    def uninterruptible(self) -> bool:
        return not self._may.interrupts

    def ends(self) -> bool:
        return self._may.ends

    def speculates(self) -> bool:
        """Only what silence may end, and what is answered unasked, is worth a reply ahead of time."""
        return self._may.answers and self._may.ends

    def reads(self) -> bool:
        """What a tool finds for the words so far is worth a reply ahead of time, too: also before the voice pauses."""
        return self._may.reads

    # The voice.

    def belongs_before(self) -> bool:
        """The voice began so soon after the commit that it may be the rest of the turn before."""
        return self._belongs_before

    def had_not_finished(self) -> bool:
        """The voice is the rest of the turn before, whose reply was a cut-in."""
        return self._belongs_before and self._voice.speech and self._voice.ms >= self._config.reopen_voice_ms

    def lasts(self) -> bool:
        """The voice may become an interruption."""
        return self._voice.hiss_ms + self._voice.ms >= self._config.pause_ms

    def interrupts(self) -> bool:
        """The voice is an interruption."""
        return self._voice.speech and self._voice.ms >= self._config.cut_ms

    def turn_first(self) -> bool:
        """The voice was there before the reply that it is over: it is the caller's turn, however short."""
        return self._turn_first

    # A silence after it.

    def first_gap(self) -> bool:
        """The voice has just paused: what is heard so far may be all."""
        return self._silent(self._config.guess_ms) and not self._guessed

    def guessed(self) -> bool:
        """A reply was guessed in this gap."""
        return self._guessed

    def paused(self) -> bool:
        """Long enough to ask for the words. Of the gaps of 60 ms inside sentences the detector takes one in five for
        likely silence, and of the ends all: 10 to 30 ms later. Every wrong one has the recogniser do its work twice."""
        return self._silence is not None and self._silence.likely and self._silent(self._config.prepare_ms)

    def quiet(self) -> bool:
        """The words are known, and the silence is long enough for a reply that was not cut to go on."""
        return self._words is not None and self._silent(self._config.resume_ms)

    def over(self) -> bool:
        """The turn has ended: the silence that its words require has passed."""
        if not self._may.ends or self._words is None or self._silence is None:
            return False
        if not self._words.text:
            return self._wordless() and self._deserves_answer()
        return self._silence.sure and self._silence.ms >= self._words.required_ms

    def cough(self) -> bool:
        """The voice was nothing: short, and without words."""
        return self._may.ends and self._wordless() and not self._deserves_answer()

    def _wordless(self) -> bool:
        return self._words is not None and not self._words.text and self._silent(self._config.wordless_ms)

    def _deserves_answer(self) -> bool:
        failed = self._words is not None and self._words.failed
        return failed or self._voice.ms >= self._config.wordless_voice_ms

    def _silent(self, ms: float) -> bool:
        return self._silence is not None and self._silence.ms >= ms

    # Its words.

    def unsettled(self) -> bool:
        """The recogniser has not given its best words yet."""
        return self._words is None

    def has_words(self) -> bool:
        return self._words is not None and bool(self._words.text)

    def stop_word(self) -> bool:
        """The words are in the agent's interrupt list."""
        return self._stop_word

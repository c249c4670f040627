"""THE turn machine. Everything that decides whose turn it is lives in this file, and `TABLE` is what facts do to it.

Pure: facts in, actions out; no clock, no await. Times are media time of the caller's sound.

    IDLE ------- voice ------> HEARING <----- voice again ----- PAUSE
      ^                          |  `----- silence: settle -----> |
      |                          |                                |
      '------ reply ended ---- REPLYING <------- commit ----------'
                                 | ^
                   voice: duck   v |  short burst: resume
                               OVERLAP <--> OVERLAP_PAUSE      lasting voice or "stop": cut, on to HEARING or PAUSE;
                                                               soon after the commit: hold at once, then reopen
"""

from collections.abc import Callable
from enum import Enum, auto

import msgspec

from voicepipe.audio import samples_to_ms
from voicepipe.ranges import Decibel, Ms
from voicepipe.turn.facts import (
    Action,
    Actions,
    Cleared,
    Committed,
    Fact,
    MaybeVoice,
    NoVoice,
    Partial,
    ReplyEnded,
    Replying,
    Silence,
    VoiceGoesOn,
    VoiceStarted,
    Words,
)


class TurnConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    guess_ms: Ms = 10
    """Silence after which the reply is prepared speculatively, to the words that are heard so far."""
    prepare_ms: Ms = 60
    """Silence after which the words are asked for; other words than those of the guess: the reply is prepared anew."""
    wordless_ms: Ms = 1000
    """Silence after voice without words: it was a cough, or it is answered with "I did not catch that"."""
    wordless_voice_ms: Ms = 700
    """Voice at least this long deserves an answer even without words."""
    pause_ms: Ms = 200
    cut_ms: Ms = 600
    """Voice over a reply: it is ducked at once, paused and cut when the voice has lasted so long. No hum cuts."""
    duck_db: Decibel = -15.0
    resume_ms: Ms = 300
    """Silence after which a reply that was not cut goes on."""
    reopen_ms: Ms = 1000
    """A caller who speaks again this soon after their last voiced sample had not finished: the turn is reopened."""
    reopen_voice_ms: Ms = 300
    """The reply stops at once, but so much voice it takes to throw it away: a hum or our own echo lets it go on."""


class State(Enum):
    IDLE = auto()
    HEARING = auto()
    PAUSE = auto()
    REPLYING = auto()
    OVERLAP = auto()
    OVERLAP_PAUSE = auto()


NOTHING: Actions = ()


class TurnMachine:
    """Feed facts in order; do what comes back before the next fact."""

    def __init__(self, config: TurnConfig) -> None:
        self.config = config
        self.state = State.IDLE
        self._answers = self._interrupts = self._ends = True
        self.words: Words | None = None
        """What `Settle` brought; stands until the voice comes back."""
        self._silent: Silence | None = None
        """The latest silence in a pause: words that come late need not wait for the next."""
        self._gap = False
        """The voice has just paused: what is heard so far may be all."""
        self._voiced_ms = 0.0
        self._committed_last: int | None = None
        self._may_reopen = False
        """The voice over the reply began soon enough after the commit to belong to the turn."""
        self._turn_first = False
        """The voice over the reply was there before it: it is the caller's turn, however short."""

    def allow(self, *, answers: bool, interrupts: bool, ends: bool) -> None:
        """From now on. `answers`: turns lead to replies, without the client's asking; `interrupts`: voice may end a
        reply; `ends`: silence may end a turn, else only the client's commit does."""
        self._answers, self._interrupts, self._ends = answers, interrupts, ends

    def on(self, fact: Fact) -> Actions:
        """The actions that `fact` calls for; none if this state has no use for it."""
        handler = TABLE.get((self.state, type(fact)))
        return handler(self, fact) if handler else NOTHING

    def _go(self, state: State, *actions: Action) -> Actions:
        self.state = state
        if state in (State.IDLE, State.HEARING, State.OVERLAP, State.REPLYING):
            self.words, self._gap = None, False
        if state is not State.PAUSE:
            self._silent = None
        return actions

    @property
    def over_reply(self) -> bool:
        """The voice that is heard, if any, is over a reply."""
        return self.state in (State.REPLYING, State.OVERLAP, State.OVERLAP_PAUSE)

    # The caller has the turn.

    def _open(self, fact: VoiceStarted) -> Actions:
        self._voiced_ms, self._may_reopen, self._turn_first = 0.0, False, False
        return self._go(State.HEARING, Action.OPEN, Action.ANNOUNCE)

    def _voiced(self, fact: VoiceGoesOn) -> Actions:
        # Most gaps as short as this are inside a word: a guess stands until there are more words.
        self._voiced_ms, self._gap = fact.ms, False
        if self._may_reopen and fact.speech and fact.ms >= self.config.reopen_voice_ms:
            return self._reopen()  # The reply ended under this voice, which belongs to the turn before.
        return NOTHING

    def _first_silence(self, fact: Silence) -> Actions:
        # Of the gaps of 60 ms inside sentences the detector takes one in five for likely silence, and of the ends all:
        # 10 to 30 ms later. Every wrong one has the recogniser do its work twice.
        if fact.ms >= self.config.prepare_ms and fact.likely:
            return self._go(State.PAUSE, Action.SETTLE)
        if fact.ms < self.config.guess_ms or self._gap:
            return NOTHING
        self._gap = True
        return self._guesses()

    def _more_words(self, fact: Partial) -> Actions:
        return self._guesses() if self._gap else (Action.DISCARD,)

    def _words_in_pause(self, fact: Partial) -> Actions:
        return self._guesses() if self.words is None else NOTHING

    def _guesses(self) -> Actions:
        return (Action.GUESS,) if self._answers and self._ends else NOTHING

    def _voice_again(self, fact: VoiceGoesOn) -> Actions:
        self._go(State.HEARING)
        return (Action.DISCARD, *self._voiced(fact))

    def _settled(self, fact: Words) -> Actions:
        self.words = fact
        prepare = self._prepares()
        return (*prepare, *self._silence(self._silent)) if self._silent else prepare

    def _silence(self, fact: Silence) -> Actions:
        self._silent, words = fact, self.words
        if not self._ends or words is None:
            return NOTHING  # The recogniser has not answered yet.
        if not words.text:
            if fact.ms < self.config.wordless_ms:
                return NOTHING
            if self._voiced_ms < self.config.wordless_voice_ms and not words.failed:
                return self._go(State.IDLE, Action.DROP)
        elif not fact.sure or fact.ms < words.required_ms:
            return NOTHING
        self._committed_last = fact.last
        if self._answers:
            return self._go(State.REPLYING, Action.COMMIT, Action.ANSWER)
        return self._go(State.IDLE, Action.COMMIT, Action.OWE)

    def _handed_over(self, fact: Committed) -> Actions:
        return self._go(State.IDLE)

    def _thrown_away(self, fact: Cleared) -> Actions:
        return self._go(State.IDLE, Action.DROP)

    # The agent has the turn.

    def _reply(self, fact: Replying) -> Actions:
        self._committed_last = None
        return self._go(State.REPLYING)

    def _perhaps_voice(self, fact: MaybeVoice) -> Actions:
        # To wait until it surely is one costs up to 200 ms; a duck for nothing is short.
        return (Action.DUCK,) if self._interrupts else NOTHING

    def _no_voice(self, fact: NoVoice) -> Actions:
        return (Action.RESUME,)

    def _voice_over(self, fact: VoiceStarted) -> Actions:
        if not self._interrupts:
            return (Action.RESUME,)  # It may have been ducked before the client wished so.
        self._voiced_ms, self._turn_first = 0.0, False
        last = self._committed_last
        self._may_reopen = last is not None and samples_to_ms(fact.pos - last) <= self.config.reopen_ms
        if self._may_reopen:
            return self._go(State.OVERLAP, Action.HOLD, Action.OPEN)
        return self._go(State.OVERLAP, Action.DUCK, Action.OPEN)

    def _reply_under_voice(self, fact: Replying) -> Actions:
        return self._under_turn(State.OVERLAP)

    def _reply_in_pause(self, fact: Replying) -> Actions:
        return self._under_turn(State.OVERLAP_PAUSE) if self._ends else NOTHING

    def _under_turn(self, state: State) -> Actions:
        if not self._interrupts:
            return NOTHING  # It plays on; what ends it is the answer to the caller's turn.
        self._committed_last, self._may_reopen, self._turn_first = None, False, True
        return self._go(state, Action.DUCK)

    def _reply_behind(self, fact: Replying) -> Actions:
        # It queues behind the reply that the voice is over; no voice that cuts both belongs to the turn before.
        self._committed_last, self._may_reopen = None, False
        return NOTHING

    def _over(self, fact: VoiceGoesOn) -> Actions:
        self._voiced_ms = fact.ms
        if fact.speech and self._may_reopen and fact.ms >= self.config.reopen_voice_ms:
            return self._reopen()
        if fact.speech and fact.ms >= self.config.cut_ms:
            return self._cut(State.HEARING)
        return (Action.HOLD,) if fact.hiss_ms + fact.ms >= self.config.pause_ms else NOTHING

    def _cut(self, state: State) -> Actions:
        words = self.words if state is State.PAUSE else None
        self._go(state)
        self.words, self._may_reopen = words, False
        return (Action.CUT,)

    def _reopen(self) -> Actions:
        self._committed_last, self._may_reopen = None, False
        self.state = State.HEARING
        return (Action.REOPEN,)

    def _heard_stop(self, fact: Partial) -> Actions:
        return self._cut(State.HEARING) if fact.interrupts else NOTHING

    def _over_silence(self, fact: Silence) -> Actions:
        ends = fact.ms >= self.config.prepare_ms and fact.likely
        return self._go(State.OVERLAP_PAUSE, Action.SETTLE) if ends else NOTHING

    def _over_again(self, fact: VoiceGoesOn) -> Actions:
        self._go(State.OVERLAP)
        return (Action.DISCARD, *self._over(fact))

    def _over_settled(self, fact: Words) -> Actions:
        self.words = fact
        return (*self._cut(State.PAUSE), *self._prepares()) if fact.interrupts else NOTHING

    def _prepares(self) -> Actions:
        return (Action.PREPARE,) if self._answers and self._ends and self.words and self.words.text else NOTHING

    def _was_nothing(self, fact: Silence) -> Actions:
        if self.words is None or fact.ms < self.config.resume_ms:
            return NOTHING
        if self._turn_first and self.words.text:
            if self._ends:
                return (*self._cut(State.PAUSE), *self._prepares())
            self.state = State.PAUSE
            return (Action.RESUME,)
        return self._go(State.REPLYING, Action.DROP_OVER, Action.RESUME)

    def _over_handed_over(self, fact: Committed) -> Actions:
        return self._go(State.IDLE, Action.CUT)

    def _over_thrown_away(self, fact: Cleared) -> Actions:
        return self._go(State.REPLYING, Action.DROP_OVER, Action.RESUME)

    def _ended(self, fact: ReplyEnded) -> Actions:
        self._committed_last = None
        return self._go(State.IDLE)

    def _ended_under_voice(self, fact: ReplyEnded) -> Actions:
        self._committed_last = None
        self.state = State.HEARING if self.state is State.OVERLAP else State.PAUSE
        return (Action.CUT, *self._prepares())


Handler = Callable[..., Actions]
TABLE: dict[tuple[State, type[Fact]], Handler] = {
    (State.IDLE, VoiceStarted): TurnMachine._open,
    (State.IDLE, Replying): TurnMachine._reply,
    (State.HEARING, VoiceGoesOn): TurnMachine._voiced,
    (State.HEARING, Partial): TurnMachine._more_words,
    (State.HEARING, Silence): TurnMachine._first_silence,
    (State.HEARING, Replying): TurnMachine._reply_under_voice,
    (State.HEARING, Committed): TurnMachine._handed_over,
    (State.HEARING, Cleared): TurnMachine._thrown_away,
    (State.PAUSE, VoiceGoesOn): TurnMachine._voice_again,
    (State.PAUSE, Partial): TurnMachine._words_in_pause,
    (State.PAUSE, Words): TurnMachine._settled,
    (State.PAUSE, Silence): TurnMachine._silence,
    (State.PAUSE, Replying): TurnMachine._reply_in_pause,
    (State.PAUSE, Committed): TurnMachine._handed_over,
    (State.PAUSE, Cleared): TurnMachine._thrown_away,
    (State.REPLYING, Replying): TurnMachine._reply_behind,
    (State.REPLYING, MaybeVoice): TurnMachine._perhaps_voice,
    (State.REPLYING, NoVoice): TurnMachine._no_voice,
    (State.REPLYING, VoiceStarted): TurnMachine._voice_over,
    (State.REPLYING, ReplyEnded): TurnMachine._ended,
    (State.OVERLAP, Replying): TurnMachine._reply_behind,
    (State.OVERLAP, VoiceGoesOn): TurnMachine._over,
    (State.OVERLAP, Partial): TurnMachine._heard_stop,
    (State.OVERLAP, Silence): TurnMachine._over_silence,
    (State.OVERLAP, ReplyEnded): TurnMachine._ended_under_voice,
    (State.OVERLAP, Committed): TurnMachine._over_handed_over,
    (State.OVERLAP, Cleared): TurnMachine._over_thrown_away,
    (State.OVERLAP_PAUSE, Replying): TurnMachine._reply_behind,
    (State.OVERLAP_PAUSE, VoiceGoesOn): TurnMachine._over_again,
    (State.OVERLAP_PAUSE, Words): TurnMachine._over_settled,
    (State.OVERLAP_PAUSE, Silence): TurnMachine._was_nothing,
    (State.OVERLAP_PAUSE, ReplyEnded): TurnMachine._ended_under_voice,
    (State.OVERLAP_PAUSE, Committed): TurnMachine._over_handed_over,
    (State.OVERLAP_PAUSE, Cleared): TurnMachine._over_thrown_away,
}

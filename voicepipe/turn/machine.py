"""THE turn machine: `RULES` say whose turn it is. Pure: facts in, actions out; no clock, no await.

    IDLE ------- voice ------> HEARING <----- voice again ----- PAUSE
      ^                          |  `----- silence: settle -----> |
      |                          |                                |
      '------ reply ended ---- REPLYING <------- commit ----------'
                                 | ^
                   voice: duck   v |  short burst: resume
                               OVERLAP <--> OVERLAP_PAUSE      lasting voice or "stop": cut, on to HEARING or PAUSE;
                                                               soon after the commit: hold at once, then reopen

`facts.py` says what facts and actions mean, `turn_state.py` what the conditions are. `README.md` has the rules as a
diagram.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple, get_args

from voicepipe.turn.facts import (
    Action,
    Actions,
    Cleared,
    Committed,
    Fact,
    MaybeVoice,
    NoSound,
    NoVoice,
    Partial,
    ReplyEnded,
    Replying,
    Silence,
    VoiceGoesOn,
    VoiceStarted,
    Words,
)
from voicepipe.turn.turn_state import TurnConfig, TurnPermissions, TurnState


class State(Enum):
    """Whose turn it is, as the turn machine knows it."""

    IDLE = auto()
    """Nobody speaks."""
    HEARING = auto()
    """The caller speaks."""
    PAUSE = auto()
    """The caller has paused, and their words are asked for."""
    REPLYING = auto()
    """The agent speaks."""
    OVERLAP = auto()
    """Both speak."""
    OVERLAP_PAUSE = auto()
    """The caller spoke over the reply, and has paused."""


Ask = Callable[[TurnState], bool]


class Rule(NamedTuple):
    """A rule of the turn machine: in `state`, when one of `facts` comes and all of `when` hold, do `do` and go to
    `then`."""

    state: State
    facts: tuple[type[Fact], ...]
    when: tuple[Ask, ...]
    do: Actions
    then: State


IDLE, HEARING, PAUSE = State.IDLE, State.HEARING, State.PAUSE
REPLYING, OVERLAP, OVERLAP_PAUSE = State.REPLYING, State.OVERLAP, State.OVERLAP_PAUSE
A, K = Action, TurnState
QUIET = (Silence, NoSound)

# fmt: off
RULES = (
    Rule(IDLE, (VoiceStarted,), (), (A.OPEN, A.ANNOUNCE), HEARING),
    Rule(IDLE, (Replying,), (), (), REPLYING),

    # The caller has the turn.
    Rule(HEARING, (VoiceGoesOn,), (K.had_not_finished,), (A.REOPEN,), HEARING),  # the reply ended under this voice
    Rule(HEARING, (Silence,), (K.paused,), (A.SETTLE,), PAUSE),
    Rule(HEARING, (Silence,), (K.first_gap, K.speculates), (A.GUESS,), HEARING),
    Rule(HEARING, (Partial,), (K.guessed, K.speculates), (A.GUESS,), HEARING),
    Rule(HEARING, (Partial,), (K.reads, K.speculates), (A.GUESS,), HEARING),
    Rule(HEARING, (Partial,), (), (A.DISCARD,), HEARING),
    Rule(HEARING, (Replying,), (K.interruptible,), (A.DUCK,), OVERLAP),  # else it plays on until this turn is answered
    Rule(HEARING, (Committed,), (), (), IDLE),
    Rule(HEARING, (Cleared,), (), (A.DROP,), IDLE),

    Rule(PAUSE, (VoiceGoesOn,), (K.had_not_finished,), (A.DISCARD, A.REOPEN), HEARING),
    Rule(PAUSE, (VoiceGoesOn,), (), (A.DISCARD,), HEARING),
    Rule(PAUSE, (Partial,), (K.unsettled, K.speculates), (A.GUESS,), PAUSE),
    Rule(PAUSE, (Words,), (K.over, K.answers, K.has_words), (A.PREPARE, A.COMMIT, A.ANSWER), REPLYING),
    Rule(PAUSE, (Silence, Words), (K.over, K.answers), (A.COMMIT, A.ANSWER), REPLYING),
    Rule(PAUSE, (Silence, Words), (K.over,), (A.COMMIT, A.REPLY_LATER), IDLE),
    Rule(PAUSE, (Silence, Words), (K.cough,), (A.DROP,), IDLE),
    Rule(PAUSE, (Words,), (K.has_words, K.speculates), (A.PREPARE,), PAUSE),
    Rule(PAUSE, (Replying,), (K.interruptible, K.ends), (A.DUCK,), OVERLAP_PAUSE),
    Rule(PAUSE, (Committed,), (), (), IDLE),
    Rule(PAUSE, (Cleared,), (), (A.DROP,), IDLE),

    # The agent has the turn.
    Rule(REPLYING, (MaybeVoice,), (K.interruptible,), (A.DUCK,), REPLYING),  # until it surely is one takes 200 ms
    Rule(REPLYING, (NoVoice,), (), (A.RESUME,), REPLYING),
    Rule(REPLYING, (VoiceStarted,), (K.uninterruptible,), (A.RESUME,), REPLYING),  # it may have been ducked before
    Rule(REPLYING, (VoiceStarted,), (K.belongs_before,), (A.HOLD, A.OPEN), OVERLAP),
    Rule(REPLYING, (VoiceStarted,), (), (A.DUCK, A.OPEN), OVERLAP),
    Rule(REPLYING, (Replying,), (), (), REPLYING),
    Rule(REPLYING, (ReplyEnded,), (), (), IDLE),

    # Both speak.
    Rule(OVERLAP, (VoiceGoesOn,), (K.had_not_finished,), (A.REOPEN,), HEARING),
    Rule(OVERLAP, (VoiceGoesOn,), (K.interrupts,), (A.CUT,), HEARING),
    Rule(OVERLAP, (VoiceGoesOn,), (K.lasts,), (A.HOLD,), OVERLAP),
    Rule(OVERLAP, (Partial,), (K.stop_word,), (A.CUT,), HEARING),
    Rule(OVERLAP, QUIET, (K.paused,), (A.SETTLE,), OVERLAP_PAUSE),
    Rule(OVERLAP, (Replying,), (), (), OVERLAP),  # it queues behind the one that the voice is over
    Rule(OVERLAP, (ReplyEnded,), (), (A.CUT,), HEARING),
    Rule(OVERLAP, (Committed,), (), (A.CUT,), IDLE),
    Rule(OVERLAP, (Cleared,), (), (A.DROP_OVER, A.RESUME), REPLYING),

    Rule(OVERLAP_PAUSE, (VoiceGoesOn,), (K.had_not_finished,), (A.DISCARD, A.REOPEN), HEARING),
    Rule(OVERLAP_PAUSE, (VoiceGoesOn,), (K.interrupts,), (A.DISCARD, A.CUT), HEARING),
    Rule(OVERLAP_PAUSE, (VoiceGoesOn,), (K.lasts,), (A.DISCARD, A.HOLD), OVERLAP),
    Rule(OVERLAP_PAUSE, (VoiceGoesOn,), (), (A.DISCARD,), OVERLAP),
    Rule(OVERLAP_PAUSE, (Words,), (K.stop_word, K.has_words, K.speculates), (A.CUT, A.PREPARE), PAUSE),
    Rule(OVERLAP_PAUSE, (Words,), (K.stop_word,), (A.CUT,), PAUSE),
    Rule(OVERLAP_PAUSE, QUIET, (K.quiet, K.turn_first, K.has_words, K.speculates), (A.CUT, A.PREPARE), PAUSE),
    Rule(OVERLAP_PAUSE, QUIET, (K.quiet, K.turn_first, K.has_words, K.ends), (A.CUT,), PAUSE),
    Rule(OVERLAP_PAUSE, QUIET, (K.quiet, K.turn_first, K.has_words), (A.RESUME,), PAUSE),
    Rule(OVERLAP_PAUSE, QUIET, (K.quiet,), (A.DROP_OVER, A.RESUME), REPLYING),
    Rule(OVERLAP_PAUSE, (Replying,), (), (), OVERLAP_PAUSE),
    Rule(OVERLAP_PAUSE, (ReplyEnded,), (K.has_words, K.speculates), (A.CUT, A.PREPARE), PAUSE),
    Rule(OVERLAP_PAUSE, (ReplyEnded,), (), (A.CUT,), PAUSE),
    Rule(OVERLAP_PAUSE, (Committed,), (), (A.CUT,), IDLE),
    Rule(OVERLAP_PAUSE, (Cleared,), (), (A.DROP_OVER, A.RESUME), REPLYING),
)
# fmt: on
"""The first that holds is taken. A fact that has no rule in a state means nothing there."""

_RULES_FOR: dict[tuple[State, type[Fact]], tuple[Rule, ...]] = {
    (state, fact): tuple(rule for rule in RULES if rule.state is state and fact in rule.facts)
    for state in State
    for fact in get_args(Fact)
}


class TurnMachine:
    """The turn machine of one call. Feed facts in order, and carry out the actions that come back before the next
    fact."""

    def __init__(self, config: TurnConfig) -> None:
        self.state = State.IDLE
        self._known = TurnState(config)

    def on(self, fact: Fact, may: TurnPermissions) -> Actions:
        """The actions that `fact` calls for, within the permissions `may`; none if this state has no use for it."""
        rules = _RULES_FOR[self.state, type(fact)]
        if rules:
            self._known.note(fact, may)
        for rule in rules:
            if all(ask(self._known) for ask in rule.when):
                self._known.follow(fact, rule.do)
                if rule.then is not self.state:
                    self.state = rule.then
                    self._known.enter(in_pause=rule.then in (State.PAUSE, State.OVERLAP_PAUSE))
                return rule.do
        return ()

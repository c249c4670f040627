"""The turn machine: its table, and what holds for every order of facts."""

from hypothesis import given
from hypothesis import strategies as st

from tests.turn import diagram
from voicepipe.turn.facts import (
    Action,
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
from voicepipe.turn.machine import RULES, State, TurnMachine
from voicepipe.turn.turn_state import TurnConfig, TurnPermissions

CONFIG = TurnConfig()
FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(VoiceStarted, st.integers(0, 10**6)),
    st.just(MaybeVoice()),
    st.just(NoVoice()),
    st.builds(VoiceGoesOn, st.floats(0, 3000), st.booleans()),
    st.builds(Silence, st.floats(0, 3000), st.integers(0, 10**6), st.booleans(), st.booleans()),
    st.builds(Words, st.sampled_from(["", "hello", "stop please"]), st.floats(100, 1200), st.booleans()),
    st.builds(Partial, st.booleans()),
    st.builds(NoSound, st.floats(1000, 3000), st.integers(0, 10**6)),
    st.just(Replying()),
    st.just(ReplyEnded()),
    st.just(Committed()),
    st.just(Cleared()),
)


class Turn:
    """A machine, and what turns may do."""

    def __init__(self) -> None:
        self._machine = TurnMachine(CONFIG)
        self.may = TurnPermissions()

    @property
    def state(self) -> State:
        return self._machine.state

    def on(self, fact: Fact) -> tuple[Action, ...]:
        return self._machine.on(fact, self.may)


def machine(*facts: Fact) -> tuple[Turn, list[Action]]:
    """A machine after `facts`, and the actions that the last one called for."""
    turn = Turn()
    actions: tuple[Action, ...] = ()
    for fact in facts:
        actions = turn.on(fact)
    return turn, list(actions)


SAID = (VoiceStarted(0), VoiceGoesOn(900), Silence(60, 16000), Words("what are your hours", 130))


def test_a_sure_end_is_committed_after_its_required_silence() -> None:
    assert machine(*SAID)[1] == [Action.PREPARE]
    assert machine(*SAID, Silence(120, 16000))[1] == []
    turn, actions = machine(*SAID, Silence(140, 16000))
    assert actions == [Action.COMMIT, Action.ANSWER]
    assert turn.state is State.REPLYING


def test_a_reply_is_guessed_at_each_gap_and_stands_until_there_are_more_words() -> None:
    guess = (VoiceStarted(0), VoiceGoesOn(900), Silence(10, 16000))
    assert machine(*guess)[1] == [Action.GUESS]
    assert machine(*guess, Silence(30, 16000))[1] == []
    assert machine(*guess, VoiceGoesOn(940))[1] == []
    assert machine(*guess, VoiceGoesOn(940), Silence(10, 16640))[1] == [Action.GUESS]
    assert machine(*guess, VoiceGoesOn(940), Partial(False))[1] == [Action.DISCARD]
    assert machine(*guess, Silence(60, 16000))[1] == [Action.SETTLE]


def test_more_words_in_a_gap_correct_the_guess_until_the_words_are_sure() -> None:
    guess = (VoiceStarted(0), VoiceGoesOn(900), Silence(10, 16000))
    assert machine(*guess, Partial(False))[1] == [Action.GUESS]
    assert machine(*guess, Silence(60, 16000), Partial(False))[1] == [Action.GUESS]
    assert machine(*SAID, Partial(False))[1] == []


def test_a_detector_that_still_hears_voice_holds_the_commit_back() -> None:
    assert machine(*SAID, Silence(200, 16000, sure=False))[1] == []


def test_words_are_not_asked_for_while_the_detector_takes_the_sound_for_voice() -> None:
    hearing = (VoiceStarted(0), VoiceGoesOn(900), Silence(10, 16000))
    assert machine(*hearing, Silence(200, 16000, likely=False, sure=False))[1] == []
    assert machine(*hearing, Silence(60, 16000, likely=True, sure=False))[1] == [Action.SETTLE]


def test_voice_in_the_silence_discards_and_listens_on() -> None:
    turn, actions = machine(*SAID, VoiceGoesOn(1200))
    assert actions == [Action.DISCARD]
    assert turn.state is State.HEARING
    assert turn.on(Silence(500, 20_000)) == (Action.SETTLE,), "the words are asked for anew"


def test_words_that_come_late_are_committed_at_once() -> None:
    heard = (VoiceStarted(0), VoiceGoesOn(900), Silence(60, 16000), Silence(140, 16000))
    late = Words("what are your hours", 130)
    assert machine(*heard, late)[1] == [Action.PREPARE, Action.COMMIT, Action.ANSWER]
    assert machine(*heard, Words("what are your", 950))[1] == [Action.PREPARE]
    assert machine(*heard[:3], Silence(140, 16000, sure=False), late)[1] == [Action.PREPARE]
    over = (Replying(), Silence(180, 16000, sure=False), ReplyEnded())
    assert Action.COMMIT not in machine(*heard, *over, late)[1]


def test_nothing_is_committed_before_the_recogniser_has_answered() -> None:
    assert machine(*SAID[:3], Silence(2000, 16000))[1] == []


def test_voice_without_words_is_dropped_when_short_and_answered_when_long() -> None:
    short = (VoiceStarted(0), VoiceGoesOn(300), Silence(60, 5000), Words("", 400), Silence(1000, 5000))
    assert machine(*short)[1] == [Action.DROP]
    long = (VoiceStarted(0), VoiceGoesOn(900), Silence(60, 16000), Words("", 400), Silence(1000, 16000))
    assert machine(*long)[1] == [Action.COMMIT, Action.ANSWER]


def test_voice_whose_recogniser_failed_is_answered_however_short() -> None:
    facts = (VoiceStarted(0), VoiceGoesOn(300), Silence(60, 5000), Words("", 400, failed=True))
    assert machine(*facts, Silence(980, 5000))[1] == []
    assert machine(*facts, Silence(1000, 5000))[1] == [Action.COMMIT, Action.ANSWER]


def test_voice_soon_after_a_commit_reopens_the_turn() -> None:
    last = 16000
    soon = last + CONFIG.reopen_ms * 16
    turn, actions = machine(*SAID, Silence(140, last), VoiceStarted(soon))
    assert actions == [Action.HOLD, Action.OPEN]
    assert turn.on(VoiceGoesOn(200)) == (Action.HOLD,)
    assert turn.on(VoiceGoesOn(300)) == (Action.REOPEN,)
    assert turn.state is State.HEARING
    assert machine(*SAID, Silence(140, last), VoiceStarted(soon + 16))[1] == [Action.DUCK, Action.OPEN]


def test_a_backchannel_soon_after_a_commit_only_holds_the_reply() -> None:
    last = 16000
    backchannel = (VoiceStarted(last + 8000), VoiceGoesOn(250), Silence(60, last + 12000), Words("mm", 400))
    turn, actions = machine(*SAID, Silence(140, last), *backchannel, Silence(300, last + 12000))
    assert actions == [Action.DROP_OVER, Action.RESUME]
    assert turn.state is State.REPLYING


def test_a_voice_that_outlasts_the_reply_becomes_the_turn_or_reopens_it() -> None:
    last = 16000
    soon = (*SAID, Silence(140, last), VoiceStarted(last + 8000), VoiceGoesOn(150), ReplyEnded())
    turn, actions = machine(*soon)
    assert (turn.state, actions) == (State.HEARING, [Action.CUT])
    assert turn.on(VoiceGoesOn(250)) == ()
    assert turn.on(VoiceGoesOn(300)) == (Action.REOPEN,)
    assert turn.on(VoiceGoesOn(400)) == ()
    turn, _ = machine(*soon, Silence(60, last + 10_400), Words("mm", 130))
    assert turn.on(VoiceGoesOn(500)) == (Action.DISCARD, Action.REOPEN)
    turn, actions = machine(*soon[:-1], Silence(60, last + 10_400), Words("mm", 130), ReplyEnded())
    assert (turn.state, actions) == (State.PAUSE, [Action.CUT, Action.PREPARE])
    late = (*SAID, Silence(140, last), VoiceStarted(last + 32_000), VoiceGoesOn(150), ReplyEnded())
    turn, actions = machine(*late)
    assert actions == [Action.CUT]
    assert turn.on(VoiceGoesOn(300)) == ()


def over(*facts: Fact) -> tuple[Turn, list[Action]]:
    return machine(Replying(), VoiceStarted(90_000), *facts)


def test_voice_over_a_reply_ducks_then_holds_then_cuts() -> None:
    assert over()[1] == [Action.DUCK, Action.OPEN]
    assert over(VoiceGoesOn(150))[1] == []
    assert over(VoiceGoesOn(200))[1] == [Action.HOLD]
    turn, actions = over(VoiceGoesOn(600))
    assert actions == [Action.CUT]
    assert turn.state is State.HEARING


def test_a_backchannel_holds_the_reply_and_never_ends_it_however_long() -> None:
    for facts in (over, lambda *more: machine(*SAID, Silence(140, 16_000), VoiceStarted(18_000), *more)):
        turn, actions = facts(VoiceGoesOn(250, speech=False), VoiceGoesOn(900, speech=False))
        assert (turn.state, actions) == (State.OVERLAP, [Action.HOLD])
        assert turn.on(VoiceGoesOn(920)) in ((Action.CUT,), (Action.REOPEN,)), "now there were words"


def test_a_reply_behind_another_takes_the_voice_over_it_out_of_the_turn_before() -> None:
    last = 16_000
    soon = (*SAID, Silence(140, last))
    turn, _ = machine(*soon, Replying(), VoiceStarted(last + 4000))
    assert turn.on(VoiceGoesOn(400)) == (Action.HOLD,)
    assert turn.on(VoiceGoesOn(600)) == (Action.CUT,)
    for pause in ((), (Silence(60, last + 6000),)):
        turn, _ = machine(*soon, VoiceStarted(last + 4000), *pause)
        state = turn.state
        assert turn.on(Replying()) == () and turn.state is state
        assert Action.REOPEN not in turn.on(VoiceGoesOn(400))


def test_what_may_be_a_voice_ducks_a_reply_and_nothing_else() -> None:
    turn, actions = machine(Replying(), MaybeVoice())
    assert (turn.state, actions) == (State.REPLYING, [Action.DUCK])
    assert turn.on(NoVoice()) == (Action.RESUME,)
    assert turn.on(VoiceStarted(90_000)) == (Action.DUCK, Action.OPEN)
    assert turn.on(MaybeVoice()) == turn.on(NoVoice()) == ()
    assert machine(MaybeVoice())[1] == []
    turn = Turn()
    turn.may = TurnPermissions(answers=True, interrupts=False, ends=True)
    turn.on(Replying())
    assert turn.on(MaybeVoice()) == ()


def test_a_duck_ends_if_the_client_takes_interruptions_away() -> None:
    turn, _ = machine(Replying(), MaybeVoice())
    turn.may = TurnPermissions(answers=True, interrupts=False, ends=True)
    assert turn.on(VoiceStarted(90_000)) == (Action.RESUME,)


def test_the_hiss_of_a_word_counts_for_the_pause_and_not_for_the_cut() -> None:
    voice = (Replying(), VoiceStarted(90_000))
    assert machine(*voice, VoiceGoesOn(100))[1] == []
    assert machine(*voice, VoiceGoesOn(100, hiss_ms=120))[1] == [Action.HOLD]
    assert machine(*voice, VoiceGoesOn(500, hiss_ms=150))[1] == [Action.HOLD]


def test_a_short_burst_lets_the_reply_go_on() -> None:
    facts = (VoiceGoesOn(250), Silence(60, 94_000), Words("mm", 400), Silence(300, 94_000))
    turn, actions = over(*facts)
    assert actions == [Action.DROP_OVER, Action.RESUME]
    assert turn.state is State.REPLYING


def test_a_word_of_the_interrupt_list_cuts_at_once_and_is_answered() -> None:
    assert over(Partial(interrupts=True))[1] == [Action.CUT]
    turn, actions = over(VoiceGoesOn(250), Silence(60, 94_000), Words("stop please", 130, interrupts=True))
    assert actions == [Action.CUT, Action.PREPARE]
    assert turn.on(Silence(140, 94_000)) == (Action.COMMIT, Action.ANSWER)


def test_a_reply_that_begins_under_a_voice_is_ducked_unless_the_client_wants_no_interruptions() -> None:
    turn, actions = machine(VoiceStarted(0), VoiceGoesOn(300), Replying())
    assert (turn.state, actions) == (State.OVERLAP, [Action.DUCK])
    turn, _ = machine(VoiceStarted(0), VoiceGoesOn(300))
    turn.may = TurnPermissions(answers=True, interrupts=False, ends=True)
    assert (turn.on(Replying()), turn.on(VoiceGoesOn(900)), turn.state) == ((), (), State.HEARING)


def test_a_turn_that_a_reply_begins_under_is_not_dropped_however_short() -> None:
    said = Words("tomorrow at seven", 130)
    for facts in (
        (VoiceStarted(0), VoiceGoesOn(500), Replying(), Silence(60, 16_000), said),
        (VoiceStarted(0), VoiceGoesOn(500), Silence(60, 16_000), Replying(), said),
        (VoiceStarted(0), VoiceGoesOn(500), Silence(60, 16_000), said, Replying()),
    ):
        turn, _ = machine(*facts)
        assert turn.state is State.OVERLAP_PAUSE
        assert turn.on(Silence(200, 16_000)) == ()
        assert turn.on(Silence(300, 16_000)) == (Action.CUT, Action.PREPARE)
        assert turn.on(Silence(320, 16_000)) == (Action.COMMIT, Action.ANSWER)
    turn, _ = machine(VoiceStarted(0), VoiceGoesOn(200), Replying(), Silence(60, 16_000), Words("", 750))
    assert turn.on(Silence(300, 16_000)) == (Action.DROP_OVER, Action.RESUME), "a cough is nothing"


def test_where_the_client_ends_the_turns_a_reply_over_the_callers_pause_plays_on() -> None:
    turn, _ = machine(VoiceStarted(0), VoiceGoesOn(500))
    turn.may = TurnPermissions(answers=True, interrupts=True, ends=False)
    for fact in (Replying(), Silence(60, 16_000), Words("tomorrow at seven", 130)):
        turn.on(fact)
    assert (turn.on(Silence(300, 16_000)), turn.state) == ((Action.RESUME,), State.PAUSE)
    turn, _ = machine(VoiceStarted(0), VoiceGoesOn(500), Silence(60, 16_000))
    turn.may = TurnPermissions(answers=True, interrupts=True, ends=False)
    assert (turn.on(Replying()), turn.state) == ((), State.PAUSE)


def test_a_client_may_turn_answers_interruptions_and_endpointing_off() -> None:
    turn = Turn()
    turn.may = TurnPermissions(answers=False, interrupts=True, ends=True)
    actions = [action for fact in (*SAID, Silence(140, 16000)) for action in turn.on(fact)]
    assert actions == [Action.OPEN, Action.ANNOUNCE, Action.SETTLE, Action.COMMIT, Action.REPLY_LATER]
    assert turn.state is State.IDLE
    turn.may = TurnPermissions(answers=True, interrupts=False, ends=True)
    turn.on(Replying())
    assert turn.on(VoiceStarted(90_000)) == (Action.RESUME,)
    turn.may = TurnPermissions(answers=True, interrupts=True, ends=False)
    turn.on(ReplyEnded())
    assert Action.COMMIT not in [action for fact in (*SAID, Silence(5000, 16000)) for action in turn.on(fact)]


@given(st.lists(FACTS, max_size=60))
def test_every_order_of_facts_keeps_the_books(facts: list[Fact]) -> None:
    turn = Turn()
    utterance = speaking = False
    for fact in facts:
        if isinstance(fact, Replying) and turn.state in (State.IDLE, State.HEARING, State.PAUSE):
            speaking = True
        for action in turn.on(fact):
            match action:
                case Action.OPEN:
                    assert not utterance, "one utterance at a time"
                    utterance = True
                case Action.REOPEN:
                    assert utterance
                    speaking = False
                case Action.SETTLE | Action.PREPARE | Action.DISCARD:
                    assert utterance
                case Action.COMMIT | Action.DROP | Action.DROP_OVER:
                    assert utterance and (speaking or action is not Action.DROP_OVER)
                    utterance = False
                case Action.ANSWER:
                    assert not utterance
                    speaking = True
                case Action.CUT | Action.DUCK | Action.HOLD | Action.RESUME:
                    assert speaking
                    speaking = action is not Action.CUT
        speaking = speaking and not isinstance(fact, ReplyEnded)
        utterance = utterance and not isinstance(fact, Committed)  # The call has taken it.
        assert utterance == (turn.state not in (State.IDLE, State.REPLYING))


def test_a_client_that_ends_the_turn_over_a_reply_cuts_it_and_one_that_clears_lets_it_go_on() -> None:
    turn, actions = over(Committed())
    assert (turn.state, actions) == (State.IDLE, [Action.CUT])
    turn, actions = over(Cleared())
    assert (turn.state, actions) == (State.REPLYING, [Action.DROP_OVER, Action.RESUME])
    assert machine(VoiceStarted(0), Cleared())[1] == [Action.DROP]
    assert machine(Committed())[1] == machine(Replying(), Cleared())[1] == []


def test_every_state_can_be_left() -> None:
    for state in State:
        assert [rule for rule in RULES if rule.state is state and rule.then is not state], state


def test_the_page_shows_the_rules_as_they_are() -> None:
    page = diagram.PAGE.read_text()
    assert diagram.written(page) == page, "run: python -m tests.turn.diagram"


def test_no_rule_stands_behind_one_that_always_holds() -> None:
    for at, rule in enumerate(RULES):
        for before in RULES[:at]:
            shared = set(before.facts) & set(rule.facts)
            assert before.state is not rule.state or not shared or not set(before.when) <= set(rule.when), rule


def test_a_line_that_falls_silent_lets_a_reply_go_on_and_ends_no_turn() -> None:
    turn, actions = over(VoiceGoesOn(250), NoSound(1000, 94_000))
    assert (turn.state, actions) == (State.OVERLAP_PAUSE, [Action.SETTLE])
    turn.on(Words("mm", 400))
    assert turn.on(NoSound(1250, 94_000)) == (Action.DROP_OVER, Action.RESUME)
    turn, actions = machine(*SAID, NoSound(5000, 16_000))
    assert (turn.state, actions) == (State.PAUSE, [])

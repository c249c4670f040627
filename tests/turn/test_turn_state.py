"""What the turn machine knows from the facts so far."""

import pytest

from voicepipe.audio import ms_to_samples
from voicepipe.turn.facts import (
    Action,
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
from voicepipe.turn.turn_state import TurnConfig, TurnPermissions, TurnState

CONFIG = TurnConfig()
MAY = TurnPermissions()


def known(*facts: Fact, may: TurnPermissions = MAY) -> TurnState:
    made = TurnState(CONFIG)
    for fact in facts:
        made.note(fact, may)
    return made


def test_what_the_client_allows_may_change_with_each_fact() -> None:
    one = known()
    assert one.answers() and one.interruptible() and one.ends() and one.speculates()
    one.note(VoiceStarted(0), TurnPermissions(answers=False, interrupts=False))
    assert one.uninterruptible() and one.ends() and not (one.answers() or one.speculates())
    one.note(VoiceStarted(0), TurnPermissions(ends=False))
    assert one.answers() and not (one.ends() or one.speculates())


def test_a_first_gap_is_guessed_in_once_until_the_voice_goes_on() -> None:
    gap = Silence(CONFIG.guess_ms, 0)
    assert not known(VoiceStarted(0)).first_gap()
    assert not known(VoiceStarted(0), Silence(CONFIG.guess_ms - 1, 0)).first_gap()
    one = known(VoiceStarted(0), gap)
    assert one.first_gap() and not one.guessed()
    one.follow(gap, (Action.GUESS,))
    assert one.guessed() and not one.first_gap()
    one.note(VoiceGoesOn(100), MAY)
    assert one.first_gap()


@pytest.mark.parametrize(("ms", "likely", "paused"), [(60, True, True), (60, False, False), (59, True, False)])
def test_words_are_asked_for_where_the_detector_hears_a_pause(ms: float, likely: bool, paused: bool) -> None:
    assert known(Silence(ms, 0, likely=likely)).paused() is paused


@pytest.mark.parametrize(
    ("silence", "over"),
    [
        (Silence(500, 0), True),
        (Silence(499, 0), False),
        (Silence(900, 0, sure=False), False),
    ],
)
def test_a_turn_is_over_after_the_silence_that_its_words_require(silence: Silence, over: bool) -> None:
    words = Words("a table", required_ms=500)
    assert known(words, silence).over() is over
    assert not known(silence).over(), "before its words are known"
    assert not known(words, silence, may=TurnPermissions(ends=False)).over()


@pytest.mark.parametrize(
    ("voice_ms", "failed", "over"), [(100, False, False), (CONFIG.wordless_voice_ms, False, True), (100, True, True)]
)
def test_voice_without_words_is_answered_when_long_or_not_heard(voice_ms: float, failed: bool, over: bool) -> None:
    facts = VoiceGoesOn(voice_ms), Words("", 200, failed=failed)
    assert known(*facts, Silence(CONFIG.wordless_ms, 0)).over() is over
    assert known(*facts, Silence(CONFIG.wordless_ms, 0)).cough() is not over
    early = known(*facts, Silence(CONFIG.wordless_ms - 1, 0))
    assert not early.over() and not early.cough()


def test_words_count_as_long_as_the_voice_pauses() -> None:
    one = known(Words("a table", 500), Silence(CONFIG.resume_ms, 0))
    assert one.has_words() and one.quiet() and not one.unsettled()
    one.enter(in_pause=True)
    assert one.has_words() and not one.quiet(), "the silence is of another state"
    one.enter(in_pause=False)
    assert one.unsettled() and not one.has_words()


def test_a_line_without_sound_is_silent() -> None:
    assert known(Words("", 200), NoSound(CONFIG.resume_ms, 0)).quiet()


@pytest.mark.parametrize(
    ("voice", "lasts", "interrupts"),
    [
        (VoiceGoesOn(199), False, False),
        (VoiceGoesOn(150, hiss_ms=50), True, False),
        (VoiceGoesOn(600), True, True),
        (VoiceGoesOn(550, hiss_ms=100), True, False),
        (VoiceGoesOn(900, speech=False), True, False),
    ],
)
def test_how_long_a_voice_must_last_over_a_reply(voice: VoiceGoesOn, lasts: bool, interrupts: bool) -> None:
    one = known(VoiceStarted(0), voice)
    assert (one.lasts(), one.interrupts()) == (lasts, interrupts)


def test_stop_words_are_those_of_the_last_words() -> None:
    one = known(Partial(interrupts=True))
    assert one.stop_word()
    one.note(Words("stop it", 200), MAY)
    assert not one.stop_word()


def answered(last: int = 16_000) -> TurnState:
    """A turn whose last voiced sample was `last` is being answered."""
    silence = Silence(200, last)
    one = known(VoiceStarted(0), Words("a table", 200), silence)
    one.follow(silence, (Action.COMMIT, Action.ANSWER))
    return one


@pytest.mark.parametrize(("after_ms", "belongs"), [(CONFIG.reopen_ms, True), (CONFIG.reopen_ms + 1, False)])
def test_a_voice_soon_behind_a_turn_belongs_to_it(after_ms: float, belongs: bool) -> None:
    one = answered()
    one.note(VoiceStarted(16_000 + ms_to_samples(after_ms)), MAY)
    assert one.belongs_before() is belongs and not one.had_not_finished()
    one.note(VoiceGoesOn(CONFIG.reopen_voice_ms, speech=False), MAY)
    assert not one.had_not_finished(), "it is a hum"
    one.note(VoiceGoesOn(CONFIG.reopen_voice_ms), MAY)
    assert one.had_not_finished() is belongs


@pytest.mark.parametrize(
    ("fact", "do"),
    [(Replying(), ()), (ReplyEnded(), ()), (VoiceGoesOn(600), (Action.CUT,)), (Partial(True), (Action.REOPEN,))],
)
def test_no_voice_belongs_to_a_turn_whose_reply_is_over(fact: Fact, do: tuple[Action, ...]) -> None:
    one = answered()
    one.follow(fact, do)
    one.note(VoiceStarted(16_100), MAY)
    assert not one.belongs_before()


@pytest.mark.parametrize(("fact", "belongs"), [(ReplyEnded(), True), (Replying(), False)])
def test_a_voice_under_which_the_reply_ends_by_itself_may_still_be_the_rest(fact: Fact, belongs: bool) -> None:
    one = answered()
    one.note(VoiceStarted(16_100), MAY)
    one.follow(fact, ())
    assert one.belongs_before() is belongs


def test_a_voice_that_was_there_before_the_reply_has_the_turn() -> None:
    one = known(VoiceStarted(0))
    one.follow(Replying(), (Action.DUCK,))
    assert one.turn_first()
    one.note(VoiceStarted(900), MAY)
    assert not one.turn_first()

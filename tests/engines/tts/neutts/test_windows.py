"""Which codes are decoded together, and what of their sound is sent."""

import numpy as np
import pytest

from voicepipe.engines.tts.neutts.windows import (
    EVERY,
    FADE,
    FIRST,
    LOOKAHEAD,
    MOST,
    WIDTH,
    CodeWindow,
    CodeWindows,
    CrossFade,
)

HOP = 4
RECORDED = 200


def windows(codes: int, *, recorded: int = RECORDED, every: int = EVERY) -> list[CodeWindow]:
    """As vLLM tells of the codes: the first one alone, then so many at a time, and the rest."""
    made, found = CodeWindows(recorded), list[CodeWindow]()
    for known in range(recorded + 1, recorded + codes, every):
        found += made.due(known)
    return [*found, *made.due(recorded + codes, ended=True)]


@pytest.mark.parametrize("codes", [1, 2, FIRST, FIRST + LOOKAHEAD, 50, 51, 299, 1000])
@pytest.mark.parametrize("recorded", [0, 3, 150, 750])
def test_every_code_is_sent_once_and_in_order(codes: int, recorded: int) -> None:
    found = windows(codes, recorded=recorded)
    assert [window.sent for window in found] == [recorded, *(window.settled for window in found[:-1])]
    assert found[-1].settled == recorded + codes
    for window in found:
        assert 0 <= window.begin <= window.sent < window.settled <= window.end <= recorded + codes
        assert window.settled - window.sent <= MOST and window.end - window.begin <= WIDTH


def test_the_first_sound_comes_soon_and_what_follows_in_larger_pieces() -> None:
    """A quarter of a second of codes, and each piece lasts until the next one can be made."""
    found = windows(400)
    sizes = [window.settled - window.sent for window in found[:-1]]
    assert FIRST <= sizes[0] < FIRST + EVERY and found[0].end - RECORDED <= 25
    assert sizes == sorted(sizes) and sizes[-1] == MOST
    for before, after in zip(sizes, sizes[1:], strict=False):
        assert after <= 3 * before


def test_what_is_sent_has_codes_on_both_sides() -> None:
    found = windows(400)
    assert all(window.end == min(RECORDED + 400, window.settled + LOOKAHEAD) for window in found)
    assert all(window.sent - window.begin >= WIDTH - MOST - LOOKAHEAD for window in found)
    assert {window.end - window.begin for window in found} == {WIDTH}, "one shape, for batches"


def test_who_listens_late_gets_what_there_is_piece_by_piece() -> None:
    made = CodeWindows(RECORDED)
    found = list(made.due(RECORDED + 500))
    assert [window.settled - window.sent for window in found] == [MOST] * 10
    assert not list(made.due(RECORDED + 500))
    assert [window.settled - window.sent for window in made.due(RECORDED + 500, ended=True)] == [20]


def test_windows_of_one_sound_are_that_sound() -> None:
    sound = np.random.default_rng(0).normal(size=(RECORDED + 300) * HOP).astype(np.float32)
    joint = CrossFade(HOP)
    parts = [joint.push(window, sound[window.begin * HOP : window.end * HOP]) for window in windows(300)]
    assert np.concatenate(parts) == pytest.approx(sound[RECORDED * HOP :], abs=1e-6)


def test_windows_that_do_not_agree_fade_into_one_another() -> None:
    """... over one code, and not by a step."""
    joint, hop = CrossFade(480), 480
    first, second, *_ = windows(300)
    low = joint.push(first, np.zeros((first.end - first.begin) * hop, np.float32))
    high = joint.push(second, np.ones((second.end - second.begin) * hop, np.float32))
    assert not low.any() and high[FADE * hop :].min() == 1
    assert np.abs(np.diff(np.concatenate([low, high]))).max() < 0.01

"""How long the recogniser is waited for, by how long it took."""

import pytest

from voicepipe.turn.patience import LATELY, TIMES, Patience


def patience(*took_ms: float) -> Patience:
    made = Patience()
    for ms in took_ms:
        made.took(ms)
    return made


def test_as_long_as_nothing_is_known_it_is_waited_for_longest() -> None:
    assert not patience().is_informed and patience(1).is_informed
    assert patience().ms(100, 2000) == 2000


@pytest.mark.parametrize(
    ("took", "waits"), [([50], 200), ([50, 60, 5000], TIMES * 60), ([1], 100), ([9000], 2000), ([40, 60], 200)]
)
def test_it_is_waited_for_by_what_it_takes_most_of_the_time(took: list[float], waits: float) -> None:
    assert patience(*took).ms(100, 2000) == waits


def test_only_the_last_turns_count() -> None:
    assert patience(*[400] * LATELY, *[50] * (LATELY // 2 + 1)).ms(0, 10_000) == TIMES * 50
    assert patience(*[400] * LATELY, *[50] * (LATELY // 2)).ms(0, 10_000) == TIMES * 400

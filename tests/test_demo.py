"""What the demo shows of its call. That it works at all is tested in test_cli."""

import io

import pytest
from rich.console import Console

from voicepipe.demo import Outcome, show

TURN = {
    "turn_latency": 187.0,
    "at_settle": 62.0,
    "at_words": 78.4,
    "at_prepare": 79.0,
    "at_phrase": 81.0,
    "at_speech": 95.0,
    "at_commit": 171.0,
    "at_audible": 187.0,
}


def shown(outcome: Outcome) -> str:
    text = io.StringIO()
    show(outcome, 300, Console(file=text, width=120))
    return text.getvalue()


def test_the_call_and_its_waterfall() -> None:
    text = shown(Outcome("When are you open?", "when are you open", "We open at noon.", True, TURN))
    assert "heard     when are you open" in text
    assert "answered  We open at noon." in text
    assert "turn latency 187 ms of 300 ms" in text
    rows = {line.split("  ")[0].strip(): line for line in text.splitlines()}
    starts = [rows[name].index("█") for name in ("speech recognition", "language model", "speech synthesis", "playout")]
    assert starts == sorted(starts)
    assert rows["budget"].rstrip().endswith("|")
    assert not [name for name in rows if "not the answer" in name]


@pytest.mark.parametrize("turn", [{}, {"turn_latency": 40.0}, {"turn_latency": 900.0, "at_commit": 880.0}])
def test_stages_that_did_not_happen_are_left_out(turn: dict[str, float]) -> None:
    assert "language model" not in shown(Outcome("a", "b", "c", True, turn))


def test_a_wrong_answer_is_said_to_be_wrong() -> None:
    assert "not the answer" in shown(Outcome("a", "", "", False, {}))

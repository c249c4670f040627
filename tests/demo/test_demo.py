"""What the demo shows of its call. That the call works at all is tested in test_cli."""

import io
from typing import Any

import pytest
from rich.console import Console

from latency_probes.records import TurnResult
from voicepipe.demo import problem_of, show

STAGES = {
    "turn_latency": 187.0,
    "at_settle": 62.0,
    "at_words": 78.4,
    "at_prepare": 79.0,
    "at_phrase": 81.0,
    "at_speech": 95.0,
    "at_commit": 171.0,
    "at_audible": 187.0,
}


def shown(*, own_agent: bool = False, **changes: Any) -> str:
    result = TurnResult("1", "finished", "slt", "quiet", "When are you open?", "when are you open", "At noon.", "right")
    for name, value in changes.items():
        setattr(result, name, value)
    text = io.StringIO()
    show(result, problem_of(result, own_agent=own_agent), 300, Console(file=text, width=120))
    return text.getvalue()


def test_the_call_and_its_waterfall() -> None:
    text = shown(gap_ms=191.4, stages=STAGES)
    assert "heard     when are you open\nanswered  At noon.\n" in text
    assert "The caller heard the answer 191 ms after their last word." in text
    assert "not the answer" not in text
    rows = {line.split("  ")[0].strip(): line.rstrip() for line in text.splitlines()}
    order = ("endpointing", "speech recognition", "language model", "speech synthesis", "playout")
    starts = [rows[name].index("█") for name in order]
    assert starts == sorted(starts)
    assert max(len(rows[name]) for name in order) < len(rows["budget"])


@pytest.mark.parametrize("stages", [{}, {"at_commit": 880.0}, {"at_prepare": 20.0}])
def test_stages_that_did_not_happen_are_left_out(stages: dict[str, float]) -> None:
    text = shown(stages=stages)
    assert "language model" not in text
    assert ("endpointing" in text) == ("at_commit" in stages)


@pytest.mark.parametrize(
    ("its", "answered"),
    [
        ({"outcome": "right"}, True),
        ({"outcome": "wrong"}, True),
        ({"outcome": "none"}, False),
        ({"outcome": "fallback"}, True),
        ({"outcome": "acknowledged"}, False),
        ({"outcome": "wrong", "labels": {"ladder": "fallback"}}, False),
        ({"outcome": "wrong", "status": "failed"}, False),
    ],
)
def test_an_agent_of_ones_own_has_answered_or_not(its: dict[str, Any], answered: bool) -> None:
    assert ("The agent has not answered." not in shown(own_agent=True, **its)) == answered
    assert "not the answer" not in shown(own_agent=True, **its)


def test_a_wrong_answer_is_said_to_be_wrong() -> None:
    text = shown(outcome="none", heard="", reply="")
    assert "heard     (nothing)\nanswered  (nothing)\nThat is not the answer" in text

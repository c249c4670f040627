"""What is broken on purpose is broken, is mended again, and what callers noticed is judged."""

import io
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from tests.chaos import __main__ as chaos
from tests.chaos.__main__ import Outcome, run, show
from tests.chaos.caller import Heard
from tests.chaos.faults import FAULTS, Fault
from tests.chaos.faulty_pop import fails, hangs
from tests.chaos.model_server import answer
from tests.chaos.switches import Switches
from voicepipe.engines.asr import whisper_model
from voicepipe.engines.tts import espeak

BY_NAME = {fault.name: fault for fault in FAULTS}
ANSWER = Heard("We open at noon.", 300.0)
FALLBACK = Heard("One moment. Sorry, I have a problem.", 700.0)


def told(fault: Fault, turns: list[Heard], down_s: float | None = None, back_s: float | None = 0.0) -> list[str]:
    return Outcome(fault, turns, down_s, back_s).wrong


def test_what_callers_heard_is_named() -> None:
    assert FALLBACK.what == "ack+fallback after 0.7 s"
    assert Heard().what == "nothing"
    assert Heard("We open", 90.0, lost=True).what == "call lost"


def test_outcomes_are_judged() -> None:
    killed, slow = BY_NAME["model-killed"], BY_NAME["model-slow"]

    assert told(killed, [FALLBACK, FALLBACK, ANSWER], down_s=1.2) == []
    assert told(killed, [FALLBACK, FALLBACK, ANSWER]) == ["no 503 within 2 s"]
    assert told(killed, [FALLBACK, Heard(), FALLBACK], 1.0, None) == [
        "turn 2 unheard",
        "not back",
        "no answer afterwards",
    ]
    assert told(slow, [ANSWER, FALLBACK, ANSWER], down_s=1.0) == ["503 though it serves", "not all answered"]


def test_a_pop_that_takes_no_call_is_no_end_of_the_table() -> None:
    outcome = Outcome(BY_NAME["model-killed"])
    console = Console(file=io.StringIO(), width=200)
    show([outcome], console)
    assert outcome.wrong == ["no call was taken before it"]


async def test_no_answer_is_no_503(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PoP whose loop stands still tells a load balancer nothing."""
    answers = iter([200, 0, 0, 503])
    where = SimpleNamespace(status=lambda: next(answers))
    monkeypatch.setattr(chaos, "POLL_S", 0.0)
    outcome = Outcome(BY_NAME["model-killed"], [FALLBACK, FALLBACK, ANSWER], back_s=0.0, began=time.monotonic())

    await chaos._watch(where, outcome)  # type: ignore[arg-type]

    assert (outcome.unanswered, outcome.down_s is not None) == (2, True)
    assert outcome.wrong == ["/readyz without an answer"]


def test_a_call_hangs_until_its_switch_is_off(tmp_path: Path) -> None:
    class Library:
        def speak(self) -> str:
            return "spoken"

    switches, said = Switches(tmp_path), list[str]()
    hangs(Library, "speak", switches, "stuck")
    fails(Library, "speak", switches, "broken")
    switches.set("stuck")
    thread = threading.Thread(target=lambda: said.append(Library().speak()))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive() and not said

    switches.clear("stuck")
    thread.join(30)
    assert said == ["spoken"]
    switches.set("broken")
    with pytest.raises(RuntimeError):
        Library().speak()


def test_what_is_broken_in_our_code_is_there() -> None:
    assert callable(espeak._Library.synthesize) and callable(whisper_model.LoadedWhisper.read)


def test_the_model_answers_as_its_switches_say(tmp_path: Path) -> None:
    switches = Switches(tmp_path)
    assert isinstance(answer(switches, {"max_tokens": 50}), list)
    switches.set("model-refuses")
    for tokens in (1, 50):
        assert getattr(answer(switches, {"max_tokens": tokens}), "status_code", 0) == 500


@pytest.mark.e2e
def test_a_full_disk_is_no_reason_to_be_silent() -> None:
    console = Console(file=io.StringIO(), width=200)

    outcomes = run([BY_NAME["disk-full"]], console)

    show(outcomes, console)
    assert [outcome.wrong for outcome in outcomes] == [[]], console.file.getvalue()  # type: ignore[attr-defined]

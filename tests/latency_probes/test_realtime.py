"""Whole calls to a server whose delays are known."""

from http import HTTPStatus

import pytest

from latency_probes import clips
from latency_probes.clips import Utterance
from latency_probes.plan import CallPlan, Over, Plan, Turn
from latency_probes.realtime import RealtimeCaller, endpoint, idle_frames
from latency_probes.run import Run, Runner
from tests.latency_probes.fake_server import Script, fake_server
from voicepipe.base.errors import ProbeError

pytestmark = pytest.mark.slow

QUIET = [utterance for utterance in clips.load() if utterance.noise == "quiet"]
INTENTS = clips.intents()
HELLO, HOURS, PAUSED = (
    next(item for item in QUIET if (item.kind, item.intent) == wanted)
    for wanted in [("finished", "hello"), ("finished", "hours"), ("pause_inside", "hours")]
)
STOP = next(item for item in QUIET if item.text == "stop please")
BLOCK_MS = 20
SLOW_MS = 20_000
"""A bound of sense, not of speed."""
idle_frames("quiet", 1)


def one_call(*said: Utterance, over: Over | None = None, number: int = 1) -> CallPlan:
    kind = "barge_in" if over else ""
    return CallPlan(number, "quiet", tuple(Turn(kind or item.kind, item, over) for item in said))


async def held(script: Script, *calls: CallPlan, references: tuple[CallPlan, ...] = ()) -> Run:
    async with fake_server(script) as url:
        runner = Runner(lambda plan: RealtimeCaller(url, plan.noise, 1), 1, 2, lambda: None)
        return await runner.run(Plan(references, calls))


async def test_answers_are_right_and_timed() -> None:
    script = Script(endpoint_ms=200, delay_ms=50)
    run = await held(script, one_call(HELLO, HOURS))
    assert run.failures == []
    assert [turn.outcome for turn in run.turns] == ["right", "right"]
    for turn, at_the_server in zip(run.turns, script.gaps_ms, strict=True):
        # What a gap is, test_measure.py holds exactly. Whatever the machine does, the caller waits no less than the
        # server was silent, but for the rest of a block behind its last voiced sample.
        assert turn.gap_ms is not None
        assert at_the_server - BLOCK_MS < turn.gap_ms < SLOW_MS
        assert at_the_server > 49
        assert not turn.cut_in


async def test_silence_before_the_voice_counts() -> None:
    run = await held(Script(endpoint_ms=100, delay_ms=0, silence_first_ms=600, greeting=False), one_call(HELLO))
    # The server is 200 ms ahead of real time: the first audible sample arrives at 400 ms and is played at 600.
    gap_ms, played_ms = run.turns[0].gap_ms, run.turns[0].played_ms
    assert gap_ms is not None
    assert played_ms is not None
    # On a slow machine the server is no longer ahead by then: at most both are the same.
    assert 350 < gap_ms <= played_ms < SLOW_MS


async def test_a_hasty_server_cuts_in() -> None:
    run = await held(Script(endpoint_ms=100, delay_ms=0, reply_s=0.3), one_call(PAUSED))
    assert run.turns[0].cut_in


async def test_a_silent_server_misses() -> None:
    run = await held(Script(answers=False), one_call(HELLO))
    assert run.turns[0].outcome == "none"


async def test_an_interruption_ducks_and_cuts_and_an_echo_reaches_the_server() -> None:
    script = Script(reply_s=2.5, duck_after_ms=60, cut_after_ms=200)
    interrupted = one_call(HOURS, over=Over("barge_in-1", STOP), number=2)
    echoed = one_call(HOURS, over=Over("overlay-echo-1", None, "echo"), number=3)
    references = (CallPlan(1, "quiet", (Turn("reference", HOURS),)),)
    run = await held(script, interrupted, echoed, references=references)
    over, echo = (turn.over for turn in sorted(run.turns, key=lambda turn: turn.id))
    assert over
    assert over.cut
    assert over.compared
    assert over.ducked_ms is not None
    assert over.decided_ms is not None
    assert over.silent_ms is not None
    assert 0 < over.ducked_ms < over.decided_ms < SLOW_MS
    assert over.silent_ms <= over.decided_ms
    assert echo
    assert echo.cut, "a server that listens by level alone takes its echo for a voice"


@pytest.mark.parametrize("status", [HTTPStatus.UNAUTHORIZED, HTTPStatus.SERVICE_UNAVAILABLE])
async def test_a_refused_call_says_why(status: HTTPStatus) -> None:
    with pytest.raises(ProbeError, match=f"HTTP {status}"):
        await held(Script(refuses=status), one_call(HELLO), one_call(HELLO, number=2))


@pytest.mark.parametrize(
    ("url", "agent", "address"),
    [
        ("ws://host:8080/v1/realtime", "", "ws://host:8080/v1/realtime"),
        ("http://host:8080", "front desk", "ws://host:8080/v1/realtime?model=front%20desk"),
        ("https://host/", "", "wss://host/v1/realtime"),
        ("host:8080", "", "ws://host:8080/v1/realtime"),
        ("wss://host/x?a=b", "c", "wss://host/x?a=b&model=c"),
    ],
)
def test_addresses(url: str, agent: str, address: str) -> None:
    assert endpoint(url, agent) == address


@pytest.mark.parametrize("url", ["ftp://host", "ws://"])
def test_no_address(url: str) -> None:
    with pytest.raises(ProbeError, match="no address"):
        endpoint(url, "")

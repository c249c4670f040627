"""The comparison with Pipecat: its bot hears and answers, and the turns of both sides are counted."""

from collections.abc import Iterator

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve

from latency_probes import clips
from latency_probes.conversation import until
from latency_probes.own_server import own_server
from latency_probes.plan import CallPlan, Turn
from latency_probes.records import TurnResult
from latency_probes.timeline import BLOCK
from latency_probes.transcripts import contains
from tests.clients.beside.__main__ import OURS, THEIRS, Comparison, bot, callers, parser
from tests.clients.beside.caller import BotCaller
from tests.clients.beside.compared import rows, table
from tests.support.ports import free_port
from tests.support.spoken import spoken
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.weights import hub

pytestmark = pytest.mark.e2e
PATIENCE_S = 90
TRANSCRIBED = "conversation.item.input_audio_transcription.completed"


@pytest.fixture(scope="module")
def pipecat() -> Iterator[str]:
    """The address of a bot."""
    with bot(hub.local(WhisperConfig().model)) as url:
        yield url


@pytest.fixture(scope="module")
def pop() -> Iterator[str]:
    """The address of a PoP."""
    with own_server() as url:
        yield url


async def test_the_bot_greets_hears_a_question_and_answers_it(pipecat: str) -> None:
    question = spoken("hours")[0]
    speech = clips.speech(question, 1)
    caller = BotCaller(pipecat, "quiet", 1)
    line = caller.timeline
    await caller.dial()
    try:
        assert await until(caller, lambda: len(line.of_type("response.done")) == 1, PATIENCE_S)
        last = caller.say(speech.pcm) + speech.voiced[1] - 1
        assert await until(caller, lambda: len(line.sent) * BLOCK > last, PATIENCE_S)
        assert await until(caller, lambda: line.answer(after=line.sent_at(last)) is not None, PATIENCE_S)
        assert await until(caller, lambda: not line.busy(), PATIENCE_S)
    finally:
        await caller.hang_up()
    assert contains(" ".join(event.data["transcript"] for event in line.of_type(TRANSCRIBED)), question.text)


async def test_each_call_is_placed_on_both_sides_and_counted(pop: str, pipecat: str) -> None:
    question = spoken("hours")[0]
    call = CallPlan(1, question.noise, (Turn(question.kind, question),))
    comparison = Comparison(callers({OURS: pop, THEIRS: pipecat}, 1), 1)
    await comparison.place(call)
    assert comparison.failures == []
    (seen,) = rows(comparison.turns, ["finished"])
    assert {side: figures.turns for side, figures in seen.sides.items()} == {OURS: 1, THEIRS: 1}
    assert all(turn.heard for its in comparison.turns.values() for turn in its)


async def test_an_interruption_ends_a_reply() -> None:
    """So does the end of the bot's speech; what is heard then is another reply."""
    sound = np.full(960, 8000, "<i2").tobytes()

    async def speak(socket: ServerConnection) -> None:
        ended = '{"label": "rtvi-ai", "type": "bot-stopped-speaking"}'
        for message in (sound, sound, '{"type": "interruption"}', sound, ended, ended, sound):
            await socket.send(message)
        await socket.wait_closed()

    async with serve(speak, "127.0.0.1", port := free_port()):
        caller = BotCaller(f"http://127.0.0.1:{port}", "quiet", 1)
        await caller.dial()
        assert await until(caller, lambda: len(caller.timeline.replies) == 3, PATIENCE_S)
        await caller.hang_up()
    assert [reply.pcm.size for reply in caller.timeline.replies.values()] == [1920, 960, 960]
    assert len(caller.timeline.of_type("response.created")) == 3
    assert len(caller.timeline.of_type("response.done")) == 2
    assert caller.timeline.busy()


def turn(gap_ms: float, noise: str = "quiet", cut_in: bool = False) -> TurnResult:
    text = "are you open"
    return TurnResult("1", "finished", "heart", noise, text, text, "", "wrong", gap_ms, cut_in=cut_in)


def test_rows_are_told_by_side_and_by_room() -> None:
    turns = {OURS: [turn(200), turn(300, "babble")], THEIRS: [turn(1000), turn(900, "babble", cut_in=True)]}
    whole, quiet, noisy = rows(turns, ["finished", "human"])
    assert [row.name.strip() for row in (whole, quiet, noisy)] == ["finished", "quiet", "noisy"]
    assert whole.ratios["gap_p50"] == 0.25
    theirs = whole.sides[THEIRS]
    assert (theirs.turns, theirs.answered, theirs.cut_ins.count) == (2, 1, 1), "who was cut in on has no gap"
    assert noisy.ratios == {"gap_p50": None, "gap_p95": None}
    assert table([whole, quiet, noisy]).row_count == 6


def test_sets_that_cannot_be_compared_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--set", "guests"])
    assert "no set 'guests'" in capsys.readouterr().err

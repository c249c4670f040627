"""The deadlines of a late answer, and stalls of one that has begun, in virtual time."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.support.scenario import Delays, Says, Scenario, play
from voicepipe.base.errors import EngineStalled
from voicepipe.call.late_reply import LateReply
from voicepipe.config import LadderConfig
from voicepipe.conversation.events import ReplyDone
from voicepipe.conversation.timing import TurnRecord, TurnSummary

pytestmark = pytest.mark.virtual_time
CONFIG = LadderConfig(short_phrase_ms=100, acknowledge_ms=400, fallback_ms=3000, stall_ms=5000)


class LateSteps:
    """A late reply that notes when each step is taken."""

    def __init__(self, config: LadderConfig = CONFIG) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.record = TurnRecord("turn_1")
        self.reply = LateReply(config, self.record, self._loop.time)
        self.reached: list[tuple[str, int]] = []

    def now_ms(self) -> int:
        return round((self._loop.time() - self._began) * 1000)

    def note(self, step: str) -> None:
        self.reached.append((step, self.now_ms()))

    async def up(self) -> None:
        async def acknowledge() -> None:
            self.note("acknowledge")

        async def fall_back() -> None:
            self.note("fallback")

        await self.reply.take_steps(lambda: self.note("short"), acknowledge, fall_back)


async def test_every_step_comes_at_its_time() -> None:
    late = LateSteps()
    await late.up()
    assert late.reached == [("short", 100), ("acknowledge", 400), ("fallback", 3000)]
    assert late.record.ladder == "fallback"


async def test_a_reply_that_has_begun_needs_no_further_step() -> None:
    late = LateSteps()
    asyncio.get_running_loop().call_later(0.2, lambda: setattr(late.reply, "begun", True))
    await late.up()
    assert late.reached == [("short", 100)]


async def test_a_step_of_0_ms_is_left_out() -> None:
    late = LateSteps(LadderConfig(short_phrase_ms=0, acknowledge_ms=400, fallback_ms=0, stall_ms=5000))
    await late.up()
    assert late.reached == [("acknowledge", 400)]


@pytest.mark.parametrize("answering", [False, True])
async def test_only_an_answer_that_has_begun_can_stall(answering: bool) -> None:
    async def engine() -> AsyncGenerator[str, None]:
        await asyncio.sleep(60)
        yield "late"

    late = LateSteps()
    late.reply.answering = answering
    if not answering:
        assert await late.reply.next(engine()) == "late"
        return
    with pytest.raises(EngineStalled):
        await late.reply.next(engine())
    assert late.now_ms() == 5000 and late.record.ladder == "stall"


async def test_after_an_engines_last_piece_comes_none() -> None:
    async def engine() -> AsyncGenerator[str, None]:
        yield "all"

    late, pieces = LateSteps(), engine()
    assert [await late.reply.next(pieces), await late.reply.next(pieces)] == ["all", None]


async def test_a_tool_s_time_does_not_bring_the_fallback_nearer() -> None:
    late = LateSteps()

    async def tools() -> None:
        for _ in range(2):
            await asyncio.sleep(1)
            with late.reply.excused():
                await asyncio.sleep(2.5)

    using = asyncio.create_task(tools())
    await late.up()
    await using
    assert late.reached == [("short", 100), ("acknowledge", 400), ("fallback", 8000)]


ANSWER = "We are open from noon to ten, on every day."
CLAUSE, SHORT = "We are open from noon to ten,", "We are open"


async def first_phrase(delays: Delays, **ladder: Any) -> tuple[str, TurnSummary]:
    """Of a reply to one turn, and its record."""
    scenario = Scenario(
        "A question.", ["what are your opening hours"], [Says(500, 1400)], 6000,
        replies={"what are your opening hours": ANSWER}, delays=delays, config={"ladder": ladder},
    )  # fmt: skip
    recording = await play(scenario)
    assert f"agent (completed): {ANSWER}" in recording.story, "whichever way it is cut"
    (record,) = (event.record for _, event in recording.events if isinstance(event, ReplyDone))
    return recording.tts.firsts[0], record


PREPARED, LATE = Delays(token_ms=1), Delays(first_token_ms=200, token_ms=20)


async def test_only_a_late_first_phrase_is_cut_short_unless_configured() -> None:
    phrase, record = await first_phrase(PREPARED)
    assert phrase == CLAUSE and record.ladder == ""
    phrase, record = await first_phrase(LATE)
    assert phrase == SHORT and record.ladder == "short"


@pytest.mark.parametrize("delays", [PREPARED, LATE], ids=["prepared", "late"])
async def test_each_first_phrase_is_cut_short_where_that_is_configured(delays: Delays) -> None:
    """Before the turn has ended, too; and that is no step of a late reply."""
    phrase, record = await first_phrase(delays, first_phrase="short")
    assert phrase == SHORT and record.ladder == ""
    assert record.at_phrase is not None and record.at_commit is not None
    assert (record.at_phrase < record.at_commit) == (delays is PREPARED)

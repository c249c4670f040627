"""Tools that only read, which run while the caller might still go on. In virtual time."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.support.scenario import Delays, Recording, Says, play
from tests.support.tools import ASKED, BOOKED, SPEAKS, TOLD, Uses, last_prompt, scenario, tools_of
from voicepipe.agent import Tool
from voicepipe.base.errors import ToolError
from voicepipe.call.early_tools import AT_A_TIME, DROPPED, OF_TURN, EarlyTools
from voicepipe.call.tool_runs import ToolRuns
from voicepipe.conversation.events import ReplyDone, ReplyStarted
from voicepipe.conversation.history import History, Ids
from voicepipe.conversation.prompt import ToolCall
from voicepipe.conversation.timing import TurnRecord
from voicepipe.tools.progress import Tell

pytestmark = pytest.mark.virtual_time

READS: dict[str, Any] = {"tools": [{"name": "book", "function": "m:f", "reads_only": True}], "acknowledgement": ""}
SPOKEN_MS = 1900
"""When the caller of `SPEAKS` has spoken."""


def heard_ms(recording: Recording, after_ms: float = SPOKEN_MS) -> float:
    audible = recording.audible(after_ms)
    assert audible is not None
    return audible - after_ms


def last_done(recording: Recording) -> ReplyDone:
    return [event for _, event in recording.events if isinstance(event, ReplyDone)][-1]


def confirmed_ms(recording: Recording) -> list[float]:
    return [at for at, event in recording.events if isinstance(event, ReplyStarted)]


async def test_it_is_begun_before_the_turn_is_over_and_its_result_is_there_when_it_is() -> None:
    uses = Uses(0.4)
    eager = await play(scenario(agent=READS), uses)
    waits = await play(scenario(), Uses(0.4))
    assert TOLD in eager.story and uses.names == ["book {}"] and tools_of(eager) == ["calls book", f"-> {BOOKED}"]
    assert uses.begun[0][1] * 1000 < confirmed_ms(eager)[0] + 1000 * eager.line.began
    assert heard_ms(eager) <= heard_ms(waits) - 100 and heard_ms(eager) == pytest.approx(160, abs=20)
    done = last_done(eager)
    [use] = done.tools
    assert (use.name, use.early, use.failed, use.took, use.result) == ("book", True, False, 400.0, BOOKED)
    assert done.record.tool and not done.record.tools_dropped and not last_done(waits).tools[0].early
    assert last_prompt(eager) == last_prompt(waits)


async def test_it_is_begun_while_the_caller_speaks_without_a_pause() -> None:
    """Also by words that cannot be all: the model says whether they are enough."""
    uses = Uses(0.4)
    early = {" ".join(ASKED.split()[:count]): "call:book {}" for count in range(1, 9)}
    recording = await play(scenario(agent=READS, replies=early | {ASKED: "call:book {}"}), uses)
    assert uses.names == ["book {}"] and 1000 * (uses.begun[0][1] - recording.line.began) < SPOKEN_MS - 400
    assert heard_ms(recording) < 300 and not last_done(recording).record.tools_dropped


async def test_where_no_tool_only_reads_all_wait_until_the_turn_is_over() -> None:
    """Also one that reads, if it is called with one that does not."""
    agent = {"tools": [{"name": "a", "function": "m:f", "reads_only": True}, {"name": "b", "function": "m:f"}]}
    uses = Uses(0.4)
    recording = await play(scenario(agent=agent, replies={ASKED: "call:a {} call:b {}"}), uses)
    confirmed = recording.line.began + confirmed_ms(recording)[0] / 1000
    assert uses.names == ["a {}", "b {}"] and all(at >= confirmed - 0.001 for _, at in uses.begun)


async def test_one_that_is_not_done_when_the_turn_is_over_runs_on_and_enters_the_conversation() -> None:
    agent = {"tools": [READS["tools"][0] | {"while_running": ["I am looking."]}], "acknowledgement": ""}
    uses = Uses(2.0)
    recording = await play(scenario(agent=agent), uses)
    assert "agent (completed): I am looking. It is booked." in recording.story and len(uses.begun) == 1
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"] and last_done(recording).tools[0].took == 2000.0
    assert heard_ms(recording) == pytest.approx(700, abs=60), "counted from the caller's last word"


NUMBER = "my number is five five five one two three four"
ON: dict[str, Any] = {"hears": [NUMBER], "says": [Says(500, 800), Says(1900, 1500)]}
"""The caller pauses inside a phrase, for longer than it takes to prepare a reply."""


def looks_up(arguments: Callable[[str], str]) -> dict[str, str]:
    """What the model looks up for all that it may hear of `NUMBER` so far."""
    words = NUMBER.split()
    heard = (" ".join(words[:count]) for count in range(1, len(words) + 1))
    return {said: f"call:book {arguments(said)}" for said in heard}


async def test_one_of_words_that_change_is_dropped_and_leaves_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    replies = looks_up(lambda said: '{"whole":true}' if said == NUMBER else '{"whole":false}')
    uses = Uses(0.3)
    recording = await play(scenario(agent=READS, replies=replies, **ON), uses)
    assert uses.names == ['book {"whole":false}', 'book {"whole":true}']
    assert tools_of(recording) == ["calls book", '-> book did {"whole":true}']
    assert 'tool: book did {"whole":true}' in last_prompt(recording)
    done = last_done(recording)
    assert [use.arguments for use in done.tools] == ['{"whole":true}'] and done.record.tools_dropped == 1
    assert not recording.tool_runs.due() and "book" not in caplog.text


async def test_of_a_turn_that_is_nothing_all_are_dropped_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """It still runs when the call is over."""
    uses = Uses(20.0)
    settings = {"create_response": False}
    recording = await play(scenario(agent=READS, length_ms=3000, settings=settings), uses)
    assert not tools_of(recording) and not caplog.text


async def test_a_speculation_that_asks_for_the_same_gets_the_run_of_the_one_before() -> None:
    uses = Uses(0.9)
    replies = looks_up(lambda said: "{}") | {BOOKED: "I know it."}
    recording = await play(scenario(agent=READS, replies=replies, **ON), uses)
    done = last_done(recording)
    assert uses.names == ["book {}"] and not done.record.tools_dropped and done.record.discarded
    assert "agent (completed): I know it." in recording.story
    [use] = done.tools
    assert use.early and use.at is not None and use.at < -1000 and use.took == 900.0, "begun in the pause"
    assert heard_ms(recording, 3400) < 300, "the result was there"


class Early:
    """The early tools of a call in which each tool runs until `over` is set."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.begun = 0

        def begin(tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str, tell: Tell) -> "asyncio.Task[str]":
            self.begun += 1
            return asyncio.ensure_future(self._run())

        self.tool_runs = ToolRuns(History(), Ids("1"), begin)
        self.tools = EarlyTools(self.tool_runs, asyncio.get_running_loop().time)

    async def _run(self) -> str:
        await self.over.wait()
        return "done"

    def ask(self, number: int, record: TurnRecord) -> bool:
        """Whether it was begun."""
        call = ToolCall(f"c{number}", "book", f'{{"n": {number}}}')
        may = self.tools.may([(LOOKS, call)], record)
        if may:
            self.tools.begin(LOOKS, call, {}, record)
        return may


LOOKS = Tool("book", function="m:f", reads_only=True)


async def test_a_turn_begins_only_so_many_and_a_call_only_so_many_at_a_time() -> None:
    early, first, second = Early(), TurnRecord("turn_1"), TurnRecord("turn_2")
    assert [early.ask(number, first) for number in range(AT_A_TIME + 1)] == [True] * AT_A_TIME + [False]
    assert early.ask(0, first) and early.begun == AT_A_TIME, "it goes on already"
    early.over.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    more = [early.ask(number, first) for number in range(AT_A_TIME, OF_TURN + 1)]
    assert more == [True] * (OF_TURN - AT_A_TIME) + [False]
    assert early.ask(OF_TURN, second) and first.tools_dropped == OF_TURN, "whose turn is over without an answer"
    early.tools.drop_others()
    assert second.tools_dropped == 1 and not early.tools.call_ids()


async def test_a_call_that_drops_many_begins_none_early_any_more() -> None:
    early = Early()
    early.over.set()
    begun = 0
    for number in range(2 * DROPPED):
        record = TurnRecord(f"turn_{number}")
        begun += early.ask(number, record)
        await asyncio.sleep(0.01)
        early.tools.drop(record)
    assert begun == early.begun == DROPPED


async def test_one_that_fails_is_told_as_others_are() -> None:
    replies = {ASKED: "call:book {}", "Error: the book is away": "I cannot look into the book."}
    uses = Uses(0.3, lambda call: ToolError("the book is away"))
    recording = await play(scenario(agent=READS, replies=replies), uses)
    assert "agent (completed): I cannot look into the book." in recording.story
    assert last_prompt(recording)[1:] == ["calls book", "tool: Error: the book is away"]
    [use] = last_done(recording).tools
    assert use.failed and use.early and tools_of(recording) == ["calls book", "-> Error: the book is away"]


async def test_the_fallback_s_time_counts_from_the_end_of_the_turn() -> None:
    """And is not put off by a tool that was over before that."""
    replies = looks_up(lambda said: "{}") | {BOOKED: "this stalls"}
    agent = READS | {"fallback": "Sorry."}
    late = Delays(llm_stalls_after=1)
    config = {"ladder": {"fallback_ms": 1500}}
    recording = await play(scenario(agent=agent, replies=replies, config=config, delays=late, **ON), Uses(0.9))
    assert last_done(recording).record.ladder == "fallback"
    assert recording.audible(3400) == pytest.approx(confirmed_ms(recording)[0] + 1500, abs=60)


# --- interrupted

CANCELLED = "cancelled: the caller interrupted"


def stops(**keys: Any) -> dict[str, Any]:
    tool = {"name": "book", "function": "m:f", "timeout_ms": 9000, "while_running": ["I am looking into the big book."]}
    return {"tools": [tool | {"interruptible": True} | keys], "acknowledgement": ""}


class Stoppable(Uses):
    cancelled = 0

    async def __call__(self, tool: Tool, call: ToolCall) -> str:
        try:
            return await super().__call__(tool, call)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


@pytest.mark.parametrize("texts_ms", [700, 9000])
async def test_who_interrupts_the_reply_that_waits_cancels_a_tool_that_may_be(texts_ms: int) -> None:
    """Also before it has said anything."""
    says = [SPEAKS, Says(3200, 1200)]
    hears = [ASKED, "no I want something else"]
    replies = {ASKED: "call:book {}", "no I want something else": "What do you want?"}
    uses = Stoppable(5.0)
    recording = await play(
        scenario(agent=stops(while_running_after_ms=texts_ms), hears=hears, says=says, replies=replies), uses
    )
    assert uses.cancelled == 1 and not uses.done
    assert f"tool: {CANCELLED}" in last_prompt(recording)
    assert "agent (completed): What do you want?" in recording.story
    assert not recording.tool_runs.due() and tools_of(recording) == ["calls book", f"-> {CANCELLED}"]
    done = next(event for _, event in recording.events if isinstance(event, ReplyDone))
    assert done.status == "cancelled" and done.tools[0].result == CANCELLED and done.tools[0].took is not None


async def test_a_hum_cancels_nothing() -> None:
    says, hears = [SPEAKS, Says(2900, 250)], [ASKED, "mm-hm"]
    uses = Stoppable(4.0)
    recording = await play(scenario(agent=stops(), hears=hears, says=says), uses)
    assert not uses.cancelled and uses.done == ["book {}"]
    assert any("It is booked." in line for line in recording.story)


# --- progress


async def test_progress_is_said_while_nothing_else_is_and_only_the_latest() -> None:
    def use(tell: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        for after, text in ((0.1, "I have the book open."), (0.2, "I look at Friday."), (3.0, "Nearly there.")):
            loop.call_later(after, tell, text)
        loop.call_later(6.1, tell, "Done.")

    recording = await play(scenario(agent=stops(while_running=[])), Uses(6.0), tells=use)
    assert "agent (completed): I look at Friday. Nearly there. It is booked." in recording.story


async def test_before_the_turn_is_over_no_progress_is_said() -> None:
    replies = looks_up(lambda said: "{}") | {BOOKED: "I know it."}
    tells = lambda tell: tell("I am looking.")  # noqa: E731
    recording = await play(scenario(agent=READS, replies=replies, **ON), Uses(5.0), tells=tells)
    assert "agent (completed): I am looking. I know it." in recording.story
    assert recording.audible(0) == pytest.approx(3400 + 700, abs=100)

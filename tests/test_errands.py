"""Tools in calls: each that was begun is finished once and told of, whatever became of its reply. In virtual time."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tests.scenario import Delays, Does, Presses, Recording, Says, Scenario, play
from voicepipe.agent import Agent, Tool
from voicepipe.engines.base import Delta, Message, Prompt
from voicepipe.engines.chat import messages
from voicepipe.engines.scripted import ScriptedLlm
from voicepipe.errands import REMEMBERED, Errand, Errands
from voicepipe.errors import OutcomeUnknown, ToolError
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.realtime.translate import Translator
from voicepipe.turn.events import ReplyDone
from voicepipe.turn.history import History, Ids
from voicepipe.turn.prompt import ToolCall
from voicepipe.writer import TOOL_ROUNDS

pytestmark = pytest.mark.virtual_time
ASKED = "book a table for two"
BOOKED = "book did {}"
TOLD = "agent (completed): It is booked."
SPEAKS = Says(500, 1400)
"""The turn is committed within 200 ms of its end, and its tool is begun then."""


class Uses:
    """A tool's uses: when each began and ended, by the name and the arguments."""

    def __init__(self, takes_s: float = 2.0, fails: Callable[[ToolCall], Exception | None] = lambda call: None) -> None:
        self.begun: list[tuple[str, float]] = []
        self.done: list[str] = []
        self._takes_s = takes_s
        self._fails = fails

    async def __call__(self, tool: Tool, call: ToolCall) -> str:
        loop = asyncio.get_running_loop()
        self.begun.append((f"{tool.name} {call.arguments}", loop.time()))
        await asyncio.sleep(self._takes_s)
        self.done.append(f"{tool.name} {call.arguments}")
        if error := self._fails(call):
            raise error
        return f"{tool.name} did {call.arguments}"

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.begun]


def scenario(**changes: Any) -> Scenario:
    tool = {"name": "book", "function": "m:f"}
    base: dict[str, Any] = {
        "about": "A booking.",
        "hears": [ASKED, "please"],
        "says": [SPEAKS],
        "length_ms": 12_000,
        "agent": {"tools": [tool], "acknowledgement": ""},
        "replies": {ASKED: "call:book {}", "please": "call:book {}", BOOKED: "It is booked."},
    }
    return Scenario(**(base | changes))


def tools_of(recording: Recording) -> list[str]:
    """What the conversation holds of tools, in order."""
    kinds = {"function_call": "calls", "function_call_output": "->"}
    items = recording.control._errands._history.items
    return [f"{kinds[item.kind]} {item.name or item.output}" for item in items if item.kind in kinds]


def last_prompt(recording: Recording) -> list[str]:
    def line(message: Message) -> str:
        return f"calls {message.call.name}" if message.call else f"{message.role}: {message.text}"

    return [line(message) for message in recording.llm.prompts[-1].messages]


async def test_a_tool_whose_reply_was_cancelled_is_finished_once_and_told_of() -> None:
    uses = Uses()
    recording = await play(scenario(does=[Does(2800, "cancel")]), uses)
    assert uses.names == uses.done == ["book {}"]
    assert "reply cancelled client_cancelled" in recording.story
    assert TOLD in recording.story[recording.story.index("reply cancelled client_cancelled") :]
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]
    assert last_prompt(recording) == [f"user: {ASKED}", "calls book", f"tool: {BOOKED}"]


@pytest.mark.parametrize("takes_s", [0.1, 0.9, 3.0])
async def test_a_caller_who_goes_on_does_not_have_it_done_twice(takes_s: float) -> None:
    """0.6 s after the last word: the turn is reopened, and the model asks for the same again."""
    uses = Uses(takes_s)
    recording = await play(scenario(says=[SPEAKS, Says(2500, 800)]), uses)
    assert "reply cancelled turn_detected" in recording.story
    assert uses.names == uses.done == ["book {}"]
    assert recording.story.count(TOLD) == 1
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]


async def test_what_was_told_may_be_done_again_and_a_server_knows_it_for_a_new_use() -> None:
    uses, keys = Uses(0.2), list[str]()
    hears = [ASKED, "and once more please", "the same again"]
    replies = {ASKED: "call:book {}", "the same again": "call:book {}", BOOKED: "It is booked."}
    says = [SPEAKS, Says(5500, 900), Says(9000, 900)]
    recording = await play(scenario(hears=hears, replies=replies, says=says, length_ms=14_000), uses, keys)
    assert uses.names == ["book {}", "book {}"] and len(set(keys)) == 2
    assert recording.story.count(TOLD) == 2


@pytest.mark.parametrize(("error", "same"), [(OutcomeUnknown("it took too long"), True), (ToolError("full"), False)])
async def test_a_repeat_of_what_nobody_knows_the_outcome_of_keeps_its_key(error: ToolError, same: bool) -> None:
    failures = [error]
    uses, keys = Uses(0.2, lambda call: failures.pop() if failures else None), list[str]()
    replies = {ASKED: "call:book {}", f"Error: {error}": "call:book {}", BOOKED: "It is booked."}
    recording = await play(scenario(replies=replies), uses, keys)
    assert uses.names == ["book {}", "book {}"] and (keys[0] == keys[1]) is same
    assert tools_of(recording) == ["calls book", f"-> Error: {error}", "calls book", f"-> {BOOKED}"]
    assert TOLD in recording.story


LONG = "It is booked for two at seven tonight. Is there anything else that I can do for you today?"
CUT, HEARD = 5200, 8000
"""Into the first sentence of that, and into the second one."""


@pytest.mark.parametrize(("at_ms", "uses"), [(CUT, 1), (HEARD, 2)])
async def test_who_interrupts_before_a_sentence_was_heard_has_not_been_told(at_ms: int, uses: int) -> None:
    """The model asks for the same: for what the caller has not heard of it is the same errand, afterwards a new one."""
    used = Uses(2.5)
    replies = {ASKED: "call:book {}", "please": "call:book {}", BOOKED: LONG}
    recording = await play(scenario(replies=replies, says=[SPEAKS, Says(at_ms, 1500)], length_ms=25_000), used)
    assert "reply cancelled turn_detected" in recording.story
    assert len(used.names) == uses
    assert f"agent (completed): {LONG}" in recording.story


async def test_who_makes_a_noise_instead_is_told_once_more() -> None:
    agent = {"tools": [{"name": "book", "function": "m:f"}], "not_understood": ["What was that?"]}
    says, replies = [SPEAKS, Says(CUT, 1500)], {ASKED: "call:book {}", BOOKED: LONG}
    recording = await play(scenario(agent=agent, replies=replies, says=says, hears=[ASKED, ""], length_ms=25_000),
                           Uses(2.5))  # fmt: skip
    assert "reply cancelled turn_detected" in recording.story
    assert recording.story.count(f"agent (completed): {LONG}") == 1
    assert last_prompt(recording)[-3:] == ["assistant: What was that?", "calls book", f"tool: {BOOKED}"]


async def test_a_client_that_cancels_the_telling_is_not_told_unasked() -> None:
    used = Uses(2.5)
    replies = {ASKED: "call:book {}", BOOKED: LONG}
    recording = await play(scenario(replies=replies, does=[Does(CUT, "cancel")]), used)
    assert [line for line in recording.story if line.startswith("reply")] == ["reply cancelled client_cancelled"]
    (errand,) = recording.control._errands.untold()
    assert errand.output == BOOKED, "it is told with the next reply"


FALLBACK = f"agent (completed): {Agent('any').fallback}"


@pytest.mark.parametrize("says_after", ["", "call:book {}"])
@pytest.mark.parametrize("modality", ["audio", "text"])
async def test_who_hears_the_fallback_has_not_been_told(says_after: str, modality: str) -> None:
    """The model says nothing to the result, or asks again and again. The caller says the same once more, as they are
    asked to; nobody speaks to them unasked in between."""
    uses = Uses(0.5)
    replies = {ASKED: "call:book {}", "please": "call:book {}", BOOKED: says_after}
    says, settings = [SPEAKS, Says(9000, 900)], {"modality": modality}
    recording = await play(scenario(replies=replies, says=says, settings=settings, length_ms=20_000), uses)
    assert uses.names == uses.done == ["book {}"]
    assert [line for line in recording.story if line.startswith(("agent", "user"))] == [
        f"user: {ASKED}", FALLBACK, "user: please", FALLBACK,
    ]  # fmt: skip
    (errand,) = recording.control._errands.untold()
    assert errand.output == BOOKED


class Restless(ScriptedLlm):
    """Calls a tool with other arguments each time that it is asked."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        self.prompts.append(prompt)
        yield ToolCall(f"c{len(self.prompts)}", "book", f'{{"page": {len(self.prompts)}}}')


async def test_a_model_that_only_calls_tools_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.scenario.ScriptedLlm", Restless)
    uses = Uses(0.1)
    recording = await play(scenario(), uses)
    assert recording.story.count(FALLBACK) == 1
    assert len(recording.llm.prompts) == len(uses.done) == len(recording.control._errands.untold()) == TOOL_ROUNDS


class Stuck(ScriptedLlm):
    """Answers everything but a tool's result."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        if prompt.messages[-1].role == "tool":
            await asyncio.Event().wait()
        async for delta in super().generate(prompt):
            yield delta


@pytest.mark.parametrize("modality", ["audio", "text"])
async def test_the_fallback_of_a_late_answer_tells_nothing(modality: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.scenario.ScriptedLlm", Stuck)
    recording = await play(scenario(settings={"modality": modality}, length_ms=15_000), Uses(0.5))
    assert FALLBACK in recording.story
    (errand,) = recording.control._errands.untold()
    assert errand.output == BOOKED


class Slow(Uses):
    """Uses of a function that takes `takes_s`, which is more than its time limit of a second."""

    def __init__(self, takes_s: float, fails: Callable[[ToolCall], Exception | None] = lambda call: None) -> None:
        super().__init__(takes_s, fails)
        self._running: dict[str, asyncio.Future[Callable[[], str]]] = {}

    async def __call__(self, tool: Tool, call: ToolCall) -> str:
        running = self._running.get(call.arguments)
        if running is None or running.done():
            running = self._running[call.arguments] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(super().__call__(tool, call))
            task.add_done_callback(lambda done: running.set_result(done.result))
        await asyncio.wait({running}, timeout=1)
        if not running.done():
            raise OutcomeUnknown(LATE, running)
        return running.result()()


LATE = "it took longer than 1000 ms; nobody knows whether it was done"


@pytest.mark.parametrize("error", [None, ToolError("there is no table left")])
async def test_what_comes_of_a_tool_after_its_time_limit_is_recorded_and_told(error: ToolError | None) -> None:
    """The caller was told that nobody knows; the conversation has one result, at its end, and it is told unasked."""
    uses = Slow(5.0, lambda call: error)
    result = f"Error: {error}" if error else BOOKED
    replies = {ASKED: "call:book {}", f"Error: {LATE}": "I do not know. Really.", result: "Now I do."}
    recording = await play(scenario(replies=replies), uses)
    assert uses.names == uses.done == ["book {}"]
    assert [line for line in recording.story if line.startswith("agent")] == [
        "agent (completed): I do not know. Really.", "agent (completed): Now I do.",
    ]  # fmt: skip
    assert tools_of(recording) == ["calls book", f"-> {result}"]
    assert last_prompt(recording) == [f"user: {ASKED}", "assistant: I do not know. Really.", "calls book",
                                      f"tool: {result}"]  # fmt: skip


@pytest.mark.parametrize("takes_s", [1.5, 2.5])
async def test_a_model_that_asks_again_for_what_still_runs_does_not_have_it_done_twice(takes_s: float) -> None:
    """The repeat has its result in time, or not either: it is told once."""
    uses = Slow(takes_s)
    replies = {ASKED: "call:book {}", f"Error: {LATE}": "call:book {}", BOOKED: "It is booked."}
    recording = await play(scenario(replies=replies), uses)
    assert uses.names == uses.done == ["book {}"]
    assert recording.story.count(TOLD) == 1
    assert tools_of(recording)[-2:] == ["calls book", f"-> {BOOKED}"]
    assert tools_of(recording).count(f"-> {BOOKED}") == 1


UNSURE = {ASKED: "call:book {}", "please": "call:book {}", f"Error: {LATE}": "I do not know. Really."}


async def test_what_comes_after_the_time_limit_of_a_repeat_as_well_is_told_once() -> None:
    """And whoever asks then is told of it: it is not begun again."""
    uses = Slow(6.5)
    hears, says = [ASKED, "please", "once more"], [SPEAKS, Says(5500, 900), Says(14_000, 900)]
    replies = UNSURE | {BOOKED: "It is booked.", "once more": "As I said."}
    recording = await play(scenario(hears=hears, says=says, replies=replies, length_ms=18_000), uses)
    assert uses.names == uses.done == ["book {}"]
    assert [line for line in recording.story if line.startswith("agent")] == [
        *["agent (completed): I do not know. Really."] * 2, TOLD, "agent (completed): As I said.",
    ]  # fmt: skip
    assert tools_of(recording)[-2:] == ["calls book", f"-> {BOOKED}"]
    assert tools_of(recording).count(f"-> {BOOKED}") == 1


async def test_what_was_repeated_beside_the_conversation_is_told_in_it() -> None:
    """The reply beside it has gone; the one that the conversation made still wants to know."""
    uses = Slow(6.0)
    does = [Does(6000, "respond_beside", ASKED)]
    recording = await play(scenario(replies=UNSURE | {BOOKED: "It is booked."}, does=does), uses)
    assert uses.names == uses.done == ["book {}"]
    assert recording.story.count(TOLD) == 1
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]


async def test_who_asks_again_in_the_moment_in_which_it_is_over_gets_its_result() -> None:
    """The loop has not told anybody yet that it is."""
    later: asyncio.Future[Callable[[], str]] = asyncio.get_running_loop().create_future()
    begun: list[str] = []

    async def use(key: str) -> str:
        begun.append(key)
        raise OutcomeUnknown(LATE, later)

    errands = Errands(History(), Ids("1"), lambda tool, call, about, key: asyncio.create_task(use(key)))

    async def ask(number: int) -> Errand:
        errand = errands.begin(Tool("book"), ToolCall(f"c{number}", "book", "{}"), {}, remembered=True)
        await errand.wait()
        errands.told([errand])
        return errand

    await ask(1)
    await ask(2)
    later.set_result(lambda: BOOKED)
    assert (await ask(3)).output == BOOKED
    assert len(begun) == 2 and len(set(begun)) == 1, "the second one waits for the first one's run"
    await asyncio.sleep(0)
    await ask(4)
    assert len(set(begun)) == 2, "it was told: this is a new wish"


async def test_however_much_is_done_meanwhile_what_runs_is_not_forgotten() -> None:
    later: asyncio.Future[Callable[[], str]] = asyncio.get_running_loop().create_future()

    async def use(name: str) -> str:
        if name == "book":
            raise OutcomeUnknown(LATE, later)
        return "looked"

    errands = Errands(History(), Ids("1"), lambda tool, call, about, key: asyncio.create_task(use(tool.name)))
    for number, name in enumerate(["book", "book", *["look"] * 2 * REMEMBERED]):
        errand = errands.begin(Tool(name), ToolCall(f"c{number}", name, "{}"), {}, remembered=True)
        await errand.wait()
        errands.told([errand])
    later.set_result(lambda: BOOKED)
    await asyncio.sleep(0)
    assert [errand.output for errand in errands.untold()] == [BOOKED]


async def test_what_comes_late_while_the_caller_is_told_that_nobody_knows_is_told_next() -> None:
    uses = Slow(1.1)
    replies = {ASKED: "call:book {}", f"Error: {LATE}": "I do not know. I am sorry.", BOOKED: "It is booked."}
    recording = await play(scenario(replies=replies), uses)
    assert [line for line in recording.story if line.startswith("agent")][-1] == TOLD
    assert recording.story.count(TOLD) == 1


async def test_all_tools_of_a_reply_run_at_once_and_it_knows_of_each() -> None:
    three = [{"name": name, "function": "m:f"} for name in ("a", "b", "c")]
    uses = Uses(2.0, lambda call: ToolError("b is closed") if call.name == "b" else None)
    replies = {ASKED: "Let me see. call:a {} call:b {} call:c {}", "c did {}": "That is all."}
    recording = await play(scenario(agent={"tools": three}, replies=replies), uses)
    assert uses.names == ["a {}", "b {}", "c {}"] and len({at for _, at in uses.begun}) == 1
    expected = ["calls a", "tool: a did {}", "calls b", "tool: Error: b is closed", "calls c", "tool: c did {}"]
    assert last_prompt(recording) == [f"user: {ASKED}", "assistant: Let me see. ", *expected]
    assert "agent (completed): Let me see. That is all." in recording.story
    messages = recording.control._errands._history.messages("")
    assert [m.text or m.call_id or "call" for m in messages][-1] == "Let me see. That is all."


def results_of(recording: Recording) -> list[str]:
    """What the model's server reads of tools in the last prompt, in order: the call, and the result it has there."""
    chat = messages(recording.llm.prompts[-1])
    return [
        f"{one['tool_calls'][0]['function']['name']} -> {two['content']}"
        for one, two in pairwise(chat) if "tool_calls" in one and one["tool_calls"][0]["id"] == two["tool_call_id"]
    ]  # fmt: skip


async def test_a_model_that_numbers_its_calls_anew_in_each_answer_reads_each_result_at_its_call() -> None:
    hears, says = [ASKED, "and a taxi"], [SPEAKS, Says(6000, 900)]
    agent = {"tools": [{"name": name, "function": "m:f"} for name in ("book", "taxi")]}
    replies = {ASKED: "call:book {}", "and a taxi": "call:taxi {}", BOOKED: "Booked.", "taxi did {}": "It comes."}
    recording = await play(scenario(hears=hears, says=says, agent=agent, replies=replies), Uses(0.2))
    assert results_of(recording) == ["book -> book did {}", "taxi -> taxi did {}"]


class Numberless(ScriptedLlm):
    """All calls have the same id."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        async for delta in super().generate(prompt):
            yield replace(delta, call_id="call_0") if isinstance(delta, ToolCall) else delta


async def test_a_model_that_gives_all_its_calls_one_id_reads_each_result_at_its_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also at calls of what is not there, and of what has been begun already."""
    monkeypatch.setattr("tests.scenario.ScriptedLlm", Numberless)
    replies = {ASKED: "call:fly {} call:book {} call:book {}", "please": "call:book {}", BOOKED: LONG}
    says, uses = [SPEAKS, Says(CUT, 1500)], Uses(2.5)
    recording = await play(scenario(replies=replies, says=says, length_ms=25_000), uses)
    assert uses.names == ["book {}"]
    booked = f"book -> {BOOKED}"
    assert results_of(recording) == ["fly -> Error: there is no tool fly", booked, booked]


async def test_calls_of_a_client_s_tools_have_ids_of_their_own() -> None:
    """By which it gives us the results."""
    hears, says = [ASKED, "please"], [SPEAKS, Says(5000, 900)]
    replies = {ASKED: "call:show {}", "please": "call:show {}"}
    recording = await play(scenario(hears=hears, says=says, replies=replies, settings={"tools": ["show"]}), Uses())
    shown = [item.call_id for _, event in recording.events if isinstance(event, ReplyDone) for item in event.items]
    assert len(shown) == len(set(shown)) == 2 and shown[0] == "c1"


async def test_a_client_s_tools_are_passed_on_beside_ours() -> None:
    uses = Uses(1.0)
    replies = {ASKED: "call:show {} call:book {} call:print {}"}
    settings = {"tools": ["show", "print"]}
    recording = await play(scenario(replies=replies, settings=settings), uses)
    assert [line for line in recording.story if line.startswith(("calls", "reply"))] == [
        "calls show", "calls print", "reply completed",
    ]  # fmt: skip
    (done,) = [event for _, event in recording.events if isinstance(event, ReplyDone)]
    assert [item.name for item in done.items] == ["show", "print"]
    assert sorted(tools_of(recording)) == [f"-> {BOOKED}", "calls book", "calls print", "calls show"]


async def test_the_wire_has_each_call_of_a_client_s_tools_and_one_end() -> None:
    replies = {ASKED: "Let me see. call:show {} call:book {} call:print {}"}
    recording = await play(scenario(replies=replies, settings={"tools": ["show", "print"]}), Uses(0.5))
    translator = Translator(Session(id="sess_1", model="demo"), "conv_1", audio_in_events=True)
    wires = [msgspec.to_builtins(wire) for _, event in recording.events for wire in translator(event)]
    ends = [wire for wire in wires if wire["type"] == "response.output_item.done"]
    assert [(wire["output_index"], wire["item"].get("name", "said")) for wire in ends] == [
        (0, "said"), (1, "show"), (2, "print"),
    ]  # fmt: skip
    (done,) = [wire["response"] for wire in wires if wire["type"] == "response.done"]
    assert [item.get("name", "said") for item in done["output"]] == ["said", "show", "print"]
    assert [wire["name"] for wire in wires if wire["type"] == "response.function_call_arguments.done"] == [
        "show",
        "print",
    ]


async def test_what_is_owed_waits_while_a_client_s_tool_runs() -> None:
    """The client asks for the next reply itself, which would meet one that nobody asked for."""
    uses = Uses(4.0)
    hears, says = [ASKED, "print it"], [SPEAKS, Says(3500, 900)]
    replies = {ASKED: "call:book {}", "print it": "call:print {}", "printed": "It is printed, and booked."}
    does = [Does(9000, "output", "printed"), Does(9010, "respond")]
    settings = {"tools": ["print"]}
    recording = await play(scenario(hears=hears, says=says, replies=replies, settings=settings, does=does), uses)
    assert recording.refused == []
    assert [line for line in recording.story if line.startswith("agent")] == [
        "agent (completed): It is printed, and booked."
    ]


async def test_a_caller_who_hangs_up_does_not_stop_it() -> None:
    uses = Uses(3.0)
    recording = await play(scenario(length_ms=3000), uses)
    assert recording.story[-1] == "ended: caller" and uses.done == []
    await asyncio.sleep(5)
    assert uses.names == uses.done == ["book {}"]
    assert tools_of(recording) == ["calls book", f"-> {BOOKED}"]


async def test_a_tool_that_is_over_just_as_the_call_ends_begins_no_reply() -> None:
    """Which would never end, and the call with it."""
    loop = asyncio.get_running_loop()
    for loop_turns in range(12):

        async def use(tool: Tool, call: ToolCall, turns: int = loop_turns, ends: float = loop.time() + 3) -> str:
            await asyncio.sleep(ends - loop.time())
            for _ in range(turns):
                await asyncio.sleep(0)
            return BOOKED

        async with asyncio.timeout(10):
            recording = await play(scenario(length_ms=3000, does=[Does(2800, "cancel")]), use)
        assert recording.story[-1] == "ended: caller"


async def test_who_speaks_while_it_runs_is_answered_and_then_told() -> None:
    """The model reads that there is no result yet; the result stands at the end, where it is answered."""
    uses = Uses(6.0)
    hears, says = [ASKED, "are you still there"], [SPEAKS, Says(4000, 1000)]
    replies = {ASKED: "call:book {}", "are you still there": "Yes.", BOOKED: "It is booked."}
    recording = await play(scenario(hears=hears, says=says, replies=replies, length_ms=14_000), uses)
    second = recording.llm.prompts[-2].messages
    assert [(m.role, m.call is not None) for m in second] == [("user", False), ("assistant", True), ("user", False)]
    assert recording.story[-4:] == ["reply completed", TOLD, "reply completed", "ended: caller"]
    assert last_prompt(recording) == [f"user: {ASKED} are you still there", "assistant: Yes.", "calls book",
                                      f"tool: {BOOKED}"]  # fmt: skip


async def test_a_model_that_fails_after_it_is_asked_once_more() -> None:
    uses = Uses(1.0)
    # Of the prompts the first is good; all that hold the result fail.
    recording = await play(scenario(replies={ASKED: "call:book {}"}, delays=Delays(llm_stalls_after=1)), uses)
    assert uses.names == ["book {}"]
    assert len([prompt for prompt in recording.llm.prompts if prompt.messages[-1].text == BOOKED]) <= 2


async def test_a_client_that_asks_for_replies_itself_gets_none_unasked() -> None:
    uses = Uses(1.0)
    does = [Does(500, "message", ASKED), Does(600, "respond"), Does(900, "cancel"), Does(4000, "respond")]
    quiet = scenario(says=[], does=does, settings={"turn_detection": "none"})
    recording = await play(quiet, uses)
    began = [at for at, event in recording.events if isinstance(event, ReplyDone)]
    assert len(began) == 2 and began[1] > 4000
    assert TOLD in recording.story and uses.names == ["book {}"]


async def test_a_tool_that_is_forced_is_called_once() -> None:
    uses = Uses(0.1)
    recording = await play(scenario(settings={"tool_choice": "required"}), uses)
    assert [prompt.tool_choice for prompt in recording.llm.prompts] == ["required", "auto"]
    assert TOLD in recording.story


async def test_a_tool_that_is_not_there_is_an_error_for_the_model() -> None:
    replies = {ASKED: "call:fly {}", "Error: there is no tool fly": "I cannot fly."}
    recording = await play(scenario(replies=replies), Uses())
    assert "agent (completed): I cannot fly." in recording.story
    assert not [line for line in recording.story if line.startswith("calls")]


async def test_a_reply_beside_the_conversation_leaves_nothing_in_it() -> None:
    uses = Uses(1.0)
    recording = await play(scenario(says=[], does=[Does(500, "respond_beside", ASKED), Does(900, "cancel")]), uses)
    assert uses.done == ["book {}"] and tools_of(recording) == []


# --- while it runs -------------------------------------------------------------------------------------------------

TALKING = {
    "acknowledgement": "",
    "tools": [{"name": "book", "function": "m:f", "while_running": ["I am looking.", "Still looking."],
               "while_running_every_ms": 1500}],
}  # fmt: skip


def heard(recording: Recording) -> list[tuple[float, float]]:
    """When the caller heard something: from, to, in ms; silences above 100 ms divide."""
    spans: list[tuple[float, float]] = []
    for at, level in recording.line.sent:
        if level > -45:
            if spans and at - spans[-1][1] <= 100:
                spans[-1] = (spans[-1][0], at + 20)
            else:
                spans.append((at, at + 20))
    return spans


async def test_a_tool_that_takes_two_seconds_does_not_leave_the_caller_in_silence() -> None:
    uses = Uses(2.0)
    recording = await play(scenario(agent=TALKING), uses)
    (begin, looking), (answer, _) = heard(recording)
    assert 700 <= begin - 1900 < 800, "of the caller's own silence"
    assert answer > looking, "the result follows"
    assert "agent (completed): I am looking. It is booked." in recording.story
    record = next(event.record for _, event in recording.events if isinstance(event, ReplyDone))
    assert record["playout"] > 1900, "a stand-in is not the answer"


async def test_the_texts_follow_one_another_and_the_last_one_comes_again() -> None:
    recording = await play(scenario(agent=TALKING, length_ms=20_000), Uses(9.0))
    spans = heard(recording)
    gaps = [round(b[0] - a[1]) for a, b in zip(spans, spans[1:], strict=False)][:-1]
    assert len(spans) >= 4 and all(1490 <= gap <= 1560 for gap in gaps), gaps
    assert "I am looking. Still looking. Still looking. " in recording.story[-3]


async def test_also_where_the_turn_s_end_was_unsure() -> None:
    """It is committed after 850 ms; a tool that is done at once needs no words all the same."""
    late = {"turn_detection": "server", "silence_ms": 850}
    recording = await play(scenario(agent=TALKING, settings=late), Uses(2.0))
    assert 900 < heard(recording)[0][0] - 1900 < 1000
    recording = await play(scenario(agent=TALKING, settings=late), Uses(0.09))
    assert TOLD in recording.story


@pytest.mark.parametrize("takes_s", [0.4, 0.5, 0.6, 0.9, 1.2])
async def test_no_text_is_said_over_the_result_or_cut_by_it(takes_s: float) -> None:
    recording = await play(scenario(agent=TALKING), Uses(takes_s))
    said = "It is booked." if takes_s < 0.55 else "I am looking. It is booked."
    assert f"agent (completed): {said}" in recording.story
    assert "Still" not in "".join(recording.story)


async def test_no_text_is_said_over_what_the_model_said_before() -> None:
    replies = {ASKED: "Let me look into the book for you now. call:book {}", BOOKED: "It is booked."}
    recording = await play(scenario(agent=TALKING, replies=replies), Uses(5.0))
    spans = heard(recording)
    assert 700 <= spans[1][0] - spans[0][1] <= 760


async def test_no_text_is_said_while_the_caller_speaks() -> None:
    """The second text is due at 4.8 s, into a cough that holds the reply."""
    says = [SPEAKS, Says(4600, 400)]
    recording = await play(scenario(agent=TALKING, says=says, hears=[ASKED, ""]), Uses(5.0))
    assert "reply cancelled turn_detected" not in recording.story
    assert 5000 < heard(recording)[1][0] < 5500


async def test_a_text_reply_says_nothing_meanwhile() -> None:
    recording = await play(scenario(agent=TALKING, settings={"modality": "text"}), Uses(2.0))
    assert TOLD in recording.story


async def test_keys_while_a_text_is_said_end_it_and_not_the_tool() -> None:
    uses = Uses(4.0)
    agent = TALKING | {"keys": {"1": "hello"}}
    replies = {ASKED: "call:book {}", "hello": "Hello!", BOOKED: "It is booked."}
    recording = await play(scenario(agent=agent, replies=replies, keys=[Presses(3000, "1")]), uses)
    assert uses.names == uses.done == ["book {}"]
    told = [line for line in recording.story if line.startswith("agent (completed)")]
    assert told == ["agent (completed): Hello!", TOLD]

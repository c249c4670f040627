"""A PoP whose calls are scripted: no engines, the ingress's own behaviour alone is under test."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from typing import Any

import msgspec
import numpy as np

from tests.ingress.fake_predecessor import FakePredecessor
from voicepipe.agent import Agent
from voicepipe.audio import BLOCK, Pcm, dbfs
from voicepipe.base.errors import (
    ConfigError,
    InputEmpty,
    ItemExists,
    ItemMismatch,
    ItemUnknown,
    NoReply,
    ReplyActive,
    TransferFailed,
    Unauthorized,
)
from voicepipe.base.takeover import PredecessorApi, SuccessorApi, TakeoverParts
from voicepipe.call_api import (
    NO_ANSWER,
    CallControl,
    CallSlot,
    DoorKind,
    HookAnswer,
    HookOutcome,
    HookRun,
    IncomingCallsApi,
    Observer,
    Refusal,
    ReplyRequest,
    Size,
    Tenant,
    Tokens,
)
from voicepipe.call_settings import NOWHERE, CallSettings, Origin
from voicepipe.config import Config, HttpConfig
from voicepipe.config.rereads import Rereads
from voicepipe.conversation.events import (
    CallEnded,
    CallEvent,
    Item,
    ItemAdded,
    ItemDeleted,
    ItemTruncated,
    KeyPressed,
    ReplyDone,
    ReplyItemAdded,
    ReplyItemDone,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
    SpeechStopped,
    WordsHeard,
)
from voicepipe.conversation.history import item_bytes
from voicepipe.conversation.timing import TurnSummary
from voicepipe.health import Health, Status
from voicepipe.ingress import server
from voicepipe.line import NO_TRANSFER, Line
from voicepipe.observe.dashboard import Dashboard
from voicepipe.observe.metrics import Metrics
from voicepipe.operator_views import RecordsApi
from voicepipe.pop import pop_http
from voicepipe.pop.hooks import HookCaller
from voicepipe.pop.incoming_calls import IncomingCalls
from voicepipe.pop.successor import Successor
from voicepipe.tools.tool_runner import ToolRunner

QUIET_BLOCKS = 5
WORDS = "what are your opening hours"
DEFAULTS = Config()
SLOTS = 60
ANSWER = ("We open at nine. ", "We close at five.")
OPERATOR_KEY = "sk-operator"
METRICS_KEY = "sk-metrics"
RECORD = TurnSummary(turn_latency=180.0, turn_id="turn_1", confident=True)


VOICES = {"en-us": "en-us", "de": "de"}


def voice_for(asked: str) -> str:
    return asked if asked in VOICES else "en-us"


class FakeCall:
    """Hears loud sound as WORDS and says ANSWER; calls the first client tool once where there is one."""

    def __init__(self, line: Line, settings: CallSettings, emit: Callable[[CallEvent], None], packets: int,
                 pace: float) -> None:  # fmt: skip
        self.id = f"rtc_{secrets.token_hex(6)}"
        self.settings = settings
        self.blocks: list[Any] = []
        self.requests: list[ReplyRequest] = []
        self.transferred: list[str] = []
        self.line = line
        self.emit = emit
        self.packets = packets
        self.pace = pace
        self.history: list[Item] = []
        self.ids = count(1)
        self.speaking: str | None = None
        self.quiet = 0
        self.since_commit = 0
        self.reply: asyncio.Task[None] | None = None
        self.response_id = ""
        self.current: Item | None = None

    # CallControl

    def voice_for(self, asked: str) -> str:
        return voice_for(self.settings.agent.voices.get(self.settings.agent.language, asked))

    def items(self) -> Sequence[Item]:
        return self.history

    def size(self) -> Size:
        return Size(len(self.history), sum(map(item_bytes, self.history)))

    def item(self, item_id: str) -> Item:
        for item in self.history:
            if item.id == item_id:
                return item
        raise ItemUnknown(f"no item {item_id!r}")

    def configure(self, settings: CallSettings) -> None:
        self.settings = settings

    def commit_input(self) -> None:
        if self.since_commit < 5 * BLOCK:
            raise InputEmpty("buffer too small")
        self.turn(self.speaking or self.new("item"))

    def clear_input(self) -> None:
        self.since_commit, self.speaking = 0, None

    def add_item(self, item: Item, previous_id: str | None) -> None:
        if any(known.id == item.id for known in self.history):
            raise ItemExists(f"item {item.id!r} is there already")
        at = len(self.history)
        if previous_id is not None:
            at = 0 if previous_id == "root" else self.history.index(self.item(previous_id)) + 1
        self.history.insert(at, item)
        self.emit(ItemAdded(item, self.history[at - 1].id if at else None))

    def delete_item(self, item_id: str) -> None:
        self.history.remove(self.item(item_id))
        self.emit(ItemDeleted(item_id))

    def press(self, key: str) -> None:
        self.emit(KeyPressed(key, 1))

    def transfer(self, target: str) -> None:
        if not self.line.transfers:
            raise TransferFailed(NO_TRANSFER)
        self.transferred.append(target)

    def truncate(self, item_id: str, audio_end_ms: int) -> None:
        item = self.item(item_id)
        if item.audio_ms is None or item.role != "assistant":
            raise ItemMismatch("not an assistant's audio")
        item.audio_ms, item.text = audio_end_ms, ""
        self.emit(ItemTruncated(item_id, audio_end_ms))

    def respond(self, request: ReplyRequest) -> None:
        self.requests.append(request)
        if self.reply:
            raise ReplyActive(f"Conversation already has an active response in progress: {self.response_id}.")
        self.answer(request)

    def cancel_reply(self, response_id: str | None) -> None:
        if self.reply is None or response_id not in (None, self.response_id):
            raise NoReply("nothing to cancel")
        self.stop("client_cancelled")

    async def run(self) -> None:
        try:
            await self.line.listen(self)
        finally:
            if self.reply:
                self.reply.cancel()
                await asyncio.wait({self.reply})
        self.emit(CallEnded("caller"))

    def close(self) -> None:
        """It holds nothing."""

    # The script

    def new(self, kind: str) -> str:
        return f"{kind}_{next(self.ids)}"

    def hear(self, block: Any) -> None:
        assert block.pcm.shape == (BLOCK,) and block.pcm.dtype == np.int16
        assert block.pos == (self.blocks[-1].pos + BLOCK if self.blocks else 0)
        self.blocks.append(block)
        self.since_commit += BLOCK
        loud = dbfs(block.pcm) > -40
        if self.settings.turn_detection is None:
            return
        if loud and self.speaking is None:
            self.speaking = self.new("item")
            self.emit(SpeechStarted(self.speaking, block.pos // 16))
            self.emit(WordsHeard(self.speaking, "what are "))
            if self.reply:
                self.stop("turn_detected")
        self.quiet = 0 if loud else self.quiet + 1
        if self.speaking and self.quiet == QUIET_BLOCKS:
            self.emit(SpeechStopped(self.speaking, block.pos // 16))
            self.turn(self.speaking)
            self.answer(ReplyRequest())

    def turn(self, item_id: str) -> None:
        item = Item(item_id, text=WORDS, audio_ms=self.since_commit // 16)
        self.history.append(item)
        previous = self.history[-2].id if len(self.history) > 1 else None
        self.speaking, self.since_commit = None, 0
        self.emit(ItemAdded(item, previous, spoken=True))

    def answer(self, request: ReplyRequest) -> None:
        self.response_id = self.new("resp")
        modality = request.modality or self.settings.modality
        remembered = request.conversation == "auto"
        self.emit(ReplyStarted(self.response_id, self.new("turn"), modality, request.metadata, remembered))
        self.reply = asyncio.create_task(self.make(modality, request))

    async def make(self, modality: str, request: ReplyRequest) -> None:
        tools = self.settings.tools if request.tools is None else request.tools
        last = self.history[-1] if self.history else None
        if tools and not (last and last.kind == "function_call_output"):
            item = Item(self.new("item"), "function_call", "assistant", call_id=self.new("call"), name=tools[0].name,
                        arguments='{"day":"monday"}')  # fmt: skip
            self.begin(item, request)
        else:
            item = Item(self.new("item"), role="assistant", status="in_progress",
                        audio_ms=0 if modality == "audio" else None)  # fmt: skip
            self.begin(item, request)
            for text in ANSWER:
                item.text += text
                self.emit(ReplyText(self.response_id, item.id, text))
                if modality == "audio":
                    await self.speak(item)
            item.status = "completed"
        self.emit(ReplyItemDone(self.response_id, item))
        self.done("completed", "", (item,))

    def begin(self, item: Item, request: ReplyRequest) -> None:
        previous = self.history[-1].id if self.history else None
        if request.conversation == "auto":
            self.history.append(item)
        self.current = item
        self.emit(ReplyItemAdded(self.response_id, item, previous))

    async def speak(self, item: Item) -> None:
        for _ in range(self.packets):
            self.line.send(tone(self.line.out_rate // 50, self.line.out_rate))
            item.audio_ms = (item.audio_ms or 0) + 20
            await asyncio.sleep(self.pace)

    def stop(self, reason: str) -> None:
        assert self.reply
        self.reply.cancel()
        self.line.clear()
        items: tuple[Item, ...] = ()
        if self.current:
            self.current.status = "incomplete"
            self.emit(ReplyItemDone(self.response_id, self.current))
            items = (self.current,)
        self.done("cancelled", reason, items)

    def done(self, status: Any, reason: str, items: tuple[Item, ...]) -> None:
        self.reply = self.current = None
        self.emit(ReplyDone(self.response_id, status, reason, items, 12, 7, RECORD))


LATE: HookOutcome = "timeout"


async def no_hook() -> HookAnswer:
    return NO_ANSWER


class FakePop:
    """Implements `call_api.PopApi`, and `CallSlot`. `keys`: key -> tenant; `refuse` is raised on admission."""

    owner = "local"
    call_id = "rtc_local.000000000000"

    def __init__(self, config: Config = DEFAULTS, keys: dict[str, Tenant] | None = None) -> None:
        its = msgspec.structs.replace(config.pop, slots=config.pop.slots or SLOTS)
        self.config = msgspec.structs.replace(config, pop=its, http=HttpConfig(port=0, origins=config.http.origins))
        self.serving = asyncio.Event()
        self.tokens: Tokens | None = None
        self.rereads = Rereads[Config]()
        self.takeover_parts = TakeoverParts()
        self.successor: SuccessorApi = Successor(self.takeover_parts, lambda: self.config)
        self.keys = keys
        self.lacking: dict[str, str] = {}
        """Name of an agent -> what it lacks."""
        self.known = {name: Agent(name, instructions="Be brief.", voice="en-us") for name in ("front-desk", "clinic")}
        self.refuse: Exception | None = None
        self.packets = 5
        self.pace = 0.002
        self.calls: list[FakeCall] = []
        self.live = 0
        self.wrap: Callable[[FakeCall], CallControl] = lambda call: call
        self.records: RecordsApi | None = None
        self.metrics = Metrics(config.pop, self.health)
        self.dashboard = Dashboard(config.pop, self.health, followers=(self.metrics,))
        self.refusals: list[Refusal] = []
        self.incoming: IncomingCallsApi = IncomingCalls(HookCaller(ToolRunner()), "local")
        self.asked: list[tuple[str, Origin, DoorKind]] = []
        """Whose hooks were asked about which calls."""
        self.hook: Callable[[], Awaitable[HookAnswer]] = no_hook
        self.hook_runs: list[HookRun] = []
        """What records of calls would say of their hooks."""
        self.ends: list[str] = []

    def agent(self, name: str | None) -> Agent:
        try:
            return self.known[name or "front-desk"]
        except KeyError:
            raise ConfigError(f"no agent {name!r}; there are: {', '.join(self.known)}") from None

    def agents(self) -> Sequence[Agent]:
        return list(self.known.values())

    def settings(self, agent: Agent, origin: Origin = NOWHERE, said: HookAnswer = NO_ANSWER) -> CallSettings:
        agent = self.known.get(said.agent, agent)
        if said.greeting is not None:
            agent = msgspec.structs.replace(agent, greeting=said.greeting)
        return CallSettings.of(agent, origin, said.variables)

    async def ask_hook(
        self, slot: CallSlot, agent: Agent, origin: Origin, door: DoorKind, limit_ms: int | None = None
    ) -> HookAnswer:
        self.asked.append((agent.name, origin, door))
        said, outcome = NO_ANSWER, LATE
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_ms and limit_ms / 1000):
                said, outcome = await self.hook(), "answered"
        slot.hook_has_run(HookRun(agent=agent.name, outcome=outcome, ms=0.0))
        return said

    def lacks(self, agent: Agent) -> str:
        return self.lacking.get(agent.name, "")

    def voices(self) -> Mapping[str, str]:
        return VOICES

    def voice_for(self, asked: str, language: str = "") -> str:
        return voice_for(asked)

    def tenant(self, key: str | None) -> Tenant:
        if self.keys is None:
            return Tenant("local")
        if key not in self.keys:
            raise Unauthorized("The key is not known.")
        return self.keys[key]

    def viewer(self, key: str | None) -> str | None:
        return None if self.keys is None or key == OPERATOR_KEY else self.tenant(key).name

    def may_scrape(self, key: str | None) -> bool:
        return not key and self.keys is None or key in (METRICS_KEY, OPERATOR_KEY)

    @contextmanager
    def admit(self, tenant: Tenant, agent: Agent, replaced: CallSlot | None = None) -> Iterator["FakePop"]:
        if self.refuse:
            raise self.refuse
        self.live += 1
        try:
            yield self
        finally:
            self.live -= 1

    def hook_has_run(self, run: HookRun) -> None:
        self.hook_runs.append(run)

    def refused(self, refusal: Refusal) -> None:
        self.refusals.append(refusal)
        self.dashboard.refused(refusal)

    def ended(self, reason: str) -> None:
        self.ends.append(reason)

    def open(self, line: Line, settings: CallSettings, observer: Observer) -> CallControl:
        call = FakeCall(line, settings, observer, self.packets, self.pace)
        self.calls.append(call)
        return self.wrap(call)

    status: Status = "ok"
    predecessor: PredecessorApi | None = None

    def health(self) -> Health:
        return Health(status=self.status, calls=self.live, predicted_ms=160, decoders=0, tasks=len(asyncio.all_tasks()),
                      threads=1, codecs=0, fds=0, rss_kb=0, heap_kb=0, blocks=0, cpu_s=0.0,
                      loop_lag_p99_ms=0.0)  # fmt: skip


@asynccontextmanager
async def serving(pop: FakePop, predecessor: FakePredecessor | None = None) -> AsyncIterator[str]:
    """The real app on a real loopback port: "127.0.0.1:PORT". `predecessor`: it has taken over from that."""
    listener = server.bind(pop.config.http)
    if predecessor:
        predecessor.http, pop.predecessor = listener, predecessor
    port = listener.getsockname()[1]
    before = asyncio.all_tasks()
    task = asyncio.create_task(pop_http.serve(pop, listener))
    ready = asyncio.create_task(pop.serving.wait())
    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if task.done():
            await task
        yield f"127.0.0.1:{port}"
        await settled(pop)
    finally:
        ready.cancel()
        task.cancel()
        await asyncio.wait({task})
    left = asyncio.all_tasks() - before
    assert not left, f"tasks left behind: {left}"


async def settled(pop: FakePop) -> None:
    """Every call has ended and given back its place."""
    async with asyncio.timeout(60):
        while pop.live:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def tone(samples: int, rate: int) -> Pcm:
    """int16[samples] of 300 Hz at about -13 dBFS."""
    return (10_000 * np.sin(2 * np.pi * 300 * np.arange(samples) / rate)).astype(np.int16)


def limited(**limits: int) -> Config:
    """The default configuration with other limits."""
    config = Config()
    return msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, **limits))

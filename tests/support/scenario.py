"""A whole conversation in virtual time: a caller from a TOML file, scripted engines, the real call."""

import asyncio
import tomllib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np

from tests.support.paths import ROOT
from tests.support.scripted import (
    ScriptedAsr,
    ScriptedAsrStream,
    ScriptedLlm,
    ScriptedTts,
    ScriptedVad,
)
from tests.support.scripted_opinions import ScriptedTurnModel
from voicepipe.agent import Agent, Tool, ToolSpec
from voicepipe.audio import BLOCK, RATE, Block, Pcm, dbfs
from voicepipe.base.errors import CallError, KeysFailed, TransferFailed
from voicepipe.call.call import Call
from voicepipe.call.call_context import CallServices
from voicepipe.call.tool_runs import ToolRuns
from voicepipe.call_api import ReplyRequest
from voicepipe.call_settings import CallSettings, Origin, SemanticVad, ServerVad
from voicepipe.config import Config
from voicepipe.conversation.events import CallEvent, Item
from voicepipe.engines.base import NO_HINTS, AsrHints, Delta, Engines, OnPartial, ToolCall
from voicepipe.ingress.socket_line import by_timer
from voicepipe.languages.written_language import LikelyLanguage
from voicepipe.line import HIDDEN, PAUSES, TAKES_NO_KEYS, NetworkQuality, OnKeys, Pump, SoundListener
from voicepipe.tools.progress import Tell

SCENARIOS = ROOT / "tests" / "scenarios"


class Says(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The caller's voice from `at_ms` for `for_ms`; what the recogniser makes of it is in `Scenario.hears`."""

    at_ms: int
    for_ms: int
    dbfs: float = -20.0


class Plays(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Music on the caller's line, which the detector takes for no voice."""

    at_ms: int
    for_ms: int
    dbfs: float = -24.0


class Mutes(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The client sends nothing, not even silence."""

    at_ms: int
    for_ms: int


class Does(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the client asks of the call at `at_ms`: a method of `Call`."""

    at_ms: int
    what: Literal[
        "respond",
        "cancel",
        "commit",
        "clear",
        "message",
        "output",
        "truncate_first",
        "truncate_last",
        "transfer",
        "respond_beside",
    ]
    text: str = ""
    ms: int = 0
    modality: Literal["audio", "text"] | None = None


class Presses(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The caller presses `keys`, one each `every_ms`, the first at `at_ms`."""

    at_ms: int
    keys: str
    every_ms: int = 300


class Transfers(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The line can transfer its caller: somebody takes the call after `after_ms`, or it `fails` for this reason."""

    after_ms: int = 2000
    fails: str = ""


class Delays(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    settle_ms: float = 10
    first_token_ms: float = 5
    token_ms: float = 2
    tts_ms: float = 5
    voice_complete_ms: float = 0
    """What a turn model takes."""
    llm_stalls_after: int | None = None
    llm_fails: int = 0
    tts_stalls_at: str | None = None


class Scenario(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    about: str
    hears: list[str]
    """The n-th utterance that is opened is recognised as the n-th of these."""
    says: list[Says]
    length_ms: int
    tells: list[str] = []
    """The language that the recogniser tells of the n-th of `hears`, with its probability: "fr 0.95"."""
    voice_complete: float | None = None
    """What a turn model says whenever it is asked; below 0: it fails."""
    lead_ms: int = 0
    """The line takes sound so far ahead of its being heard."""
    replies: dict[str, str] = {}
    """What follows "call:" in a reply is a tool's name and its arguments; there may be several."""
    expect: list[str] = []
    """Lines of `Recording.story` that must come in this order; others may stand between."""
    never: list[str] = []
    """Beginnings of lines that must not come."""
    prompt: list[str] = []
    """`role: text` of the last prompt's messages."""
    gap_ms: tuple[float, float] | None = None
    """Bounds of the time from the end of the caller's first `says` to the first audible sample after it."""
    last_gap_ms: tuple[float, float] | None = None
    """The same of the last `says`."""
    audible_ms: tuple[float, float] | None = None
    """Bounds of the time of the first audible sample."""
    silence_ms: tuple[float, float] | None = None
    """From when to when no audible sample leaves."""
    silent_ms: float | None = None
    """After the last `says` begins, no more audible sound leaves later than this (until the next reply)."""
    ducked_ms: float | None = None
    """So soon after the last `says` begins the reply is quieter; less than a second later it is loud again."""
    ladder: list[str] = []
    """The rungs that replies needed, in order."""
    refused: list[str] = []
    """Names of the errors that the client's requests met, in order."""
    agent: dict[str, Any] = {}
    colleagues: dict[str, dict[str, Any]] = {}
    """Other agents of the PoP, by name."""
    spoken: list[str] = []
    """`voice: text` of what the voice was asked for, in order; others may stand between."""
    does: list[Does] = []
    mutes: list[Mutes] = []
    plays: list[Plays] = []
    keys: list[Presses] = []
    transfers: Transfers | None = None
    transferred: list[str] = []
    """Where the line was asked to send its caller, in order."""
    takes_keys: bool = False
    """The line can be sent keys."""
    pressed: str = ""
    """The keys that were sent to the line, in order."""
    expected_languages: list[str] = []
    """In which language the recogniser was told to expect each utterance."""
    told_languages: list[str] = []
    """Which language the prompts said that the caller speaks, each time that it was another one."""
    asked: list[str] = []
    """What the recogniser was told that the agent had said, when each utterance began."""
    firsts: list[str] = []
    """The phrases that went before others at the voice, since nothing was heard until they were there."""
    settings: dict[str, Any] = {}
    """Overlay of the call's settings."""
    delays: Delays = Delays()
    config: dict[str, Any] = {}


def load(name: str) -> Scenario:
    """The one of `tests/scenarios/` that is called so."""
    return msgspec.convert(tomllib.loads((SCENARIOS / f"{name}.toml").read_text()), Scenario)


@dataclass
class ScenarioLine:
    """A caller who speaks as the scenario says, in real (virtual) time, and records what is sent to them."""

    scenario: Scenario
    kind: str = "scenario"
    out_rate: int = RATE
    lead_ms: int = 0
    setup_ms: int = 0
    transfers: bool = False
    takes_sound: bool = True
    sent: list[tuple[float, float]] = field(default_factory=list)
    """(ms since the answer, dBFS) of each packet."""
    began: float = 0.0
    ended: bool = False
    transferred: list[str] = field(default_factory=list)
    pressed: list[tuple[float, str]] = field(default_factory=list)
    """(ms since the answer, key) of each key and pause that was sent: when it ended."""
    _samples: int = 0
    _play_end: float = 0.0

    def now_ms(self) -> float:
        return (asyncio.get_running_loop().time() - self.began) * 1000

    async def listen(self, listener: SoundListener) -> None:
        self.began = asyncio.get_running_loop().time()
        pos = 0
        for n in range(self.scenario.length_ms // 20):
            if self.ended:
                return
            due = self.began + (n + 1) * 0.02
            if (early_s := due - asyncio.get_running_loop().time()) > 0:  # What is there is taken without a pause.
                await asyncio.sleep(early_s)
            if not any(mutes.at_ms <= n * 20 < mutes.at_ms + mutes.for_ms for mutes in self.scenario.mutes):
                listener.hear(Block(self._voice(n * 20), pos, asyncio.get_running_loop().time()))
                pos += BLOCK

    def _voice(self, ms: int) -> Pcm:
        for says in self.scenario.says:
            if says.at_ms <= ms < says.at_ms + says.for_ms:
                # Square: a sine is a hum.
                wave = np.sign(np.sin(2 * np.pi * 180 * np.arange(BLOCK) / RATE + ms))
                pcm: Pcm = (32768 * 10 ** (says.dbfs / 20) * wave).astype(np.int16)
                return pcm
        for plays in self.scenario.plays:
            if plays.at_ms <= ms < plays.at_ms + plays.for_ms:
                chord = np.sin(2 * np.pi * np.outer((220, 277, 330), np.arange(ms * 16, ms * 16 + BLOCK) / RATE)).sum(0)
                note: Pcm = (32768 * 10 ** (plays.dbfs / 20) * chord / np.sqrt(1.5)).astype(np.int16)
                return note
        return np.zeros(BLOCK, np.int16)

    async def transfer(self, target: str) -> None:
        assert self.scenario.transfers
        self.transferred.append(target)
        await asyncio.sleep(self.scenario.transfers.after_ms / 1000)
        if why := self.scenario.transfers.fails:
            raise TransferFailed(why)

    @property
    def lacks_keys(self) -> str:
        return "" if self.scenario.takes_keys else TAKES_NO_KEYS

    def send_keys(self, keys: str, on_sent: OnKeys = lambda keys: None) -> "asyncio.Future[None]":
        if self.lacks_keys:
            raise KeysFailed(self.lacks_keys)
        return asyncio.ensure_future(self._dial(keys, on_sent))

    async def _dial(self, keys: str, on_sent: OnKeys) -> None:
        for key in keys:
            await asyncio.sleep(PAUSES.get(key, 0.24))
            self.pressed.append((self.now_ms(), key))
            on_sent(key)

    def send(self, pcm: Pcm) -> None:
        self.sent.append((self.now_ms(), dbfs(pcm)))
        self._samples += pcm.size
        self._play_end = max(self._play_end, asyncio.get_running_loop().time()) + pcm.size / RATE

    def clear(self) -> int:
        lost = self._unplayed()
        self._samples, self._play_end = self._samples - lost, 0.0
        return lost

    async def pace(self, pump: Pump, wake: asyncio.Event) -> None:
        await by_timer(pump, wake)

    def network(self) -> NetworkQuality:
        return HIDDEN

    @property
    def caller_network(self) -> str:
        return ""

    def played(self) -> int:
        return self._samples - self._unplayed()

    def _unplayed(self) -> int:
        return round(max(0.0, self._play_end - asyncio.get_running_loop().time()) * RATE)

    async def hang_up(self) -> None:
        self.ended = True


@dataclass
class Recording:
    scenario: Scenario
    line: ScenarioLine
    events: list[tuple[float, CallEvent]]
    story: list[str]
    """What `told` said of each event when it came: items change afterwards."""
    asr: "TellingAsr"
    llm: ScriptedLlm
    tts: ScriptedTts
    call: Call
    refused: list[str]

    @property
    def tool_runs(self) -> ToolRuns:
        """What the call has had done by tools, and its conversation."""
        return self.call._tool_runs

    def audible(self, after_ms: float) -> float | None:
        """When the first audible packet after `after_ms` was sent."""
        return next((at for at, level in self.line.sent if at >= after_ms and level > -45), None)

    def ducked(self, after_ms: float) -> tuple[float | None, float | None]:
        """When, after `after_ms`, sound was sent that is quieter than the scripted voice; and loud sound after that."""
        sounds = [(at, level) for at, level in self.line.sent if at >= after_ms and level > -45]
        quiet = next((at for at, level in sounds if level < -22), None)
        loud = next((at for at, level in sounds if quiet is not None and at > quiet and level > -17), None)
        return quiet, loud

    def silent(self, after_ms: float) -> float:
        """When the sound that was to be heard at `after_ms` ended: 100 ms without an audible packet followed."""
        end = after_ms
        for at, level in self.line.sent:
            if at >= after_ms and level > -45:
                if at > end + 100:
                    break
                end = at
        return end


class MusicalVad(ScriptedVad):
    """Tells music from voices, which are square here."""

    def probabilities(self, asked: Sequence[tuple[None, Pcm]]) -> list[float]:
        music = [np.abs(window.astype(np.float32)).max() > 1.2 * np.std(window) for _, window in asked]
        return [0.02 if played else said for played, said in zip(music, super().probabilities(asked), strict=True)]


class TellingAsr(ScriptedAsr):
    """Keeps what it was told."""

    def __init__(self, *args: Any, tells: Sequence[str] = ()) -> None:
        super().__init__(*args)
        self.asked: list[str] = []
        self.languages: list[str] = []
        """In which language each utterance was expected."""
        self.vocabularies: set[tuple[str, ...]] = set()
        self._tells = [LikelyLanguage(tag, float(odds)) for tag, odds in map(str.split, tells)]

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> ScriptedAsrStream:
        self.asked.append(hints.asked)
        self.languages.append(hints.language)
        self.vocabularies.add(hints.vocabulary)
        stream = super().stream(on_partial, hints)
        if self._tells and len(hints.languages) > 1:
            stream.language = self._tells[(self._streams - 1) % len(self._tells)]
        return stream


def told(event: CallEvent) -> str:
    """One line for an event; "" for those that only carry bookkeeping."""
    name = type(event).__name__
    match name:
        case "ItemAdded":
            return f"{event.item.role}: {event.item.text}"  # type: ignore[union-attr]
        case "ReplyStarted" if event.record.language:  # type: ignore[union-attr]
            return f"caller speaks {event.record.language}"  # type: ignore[union-attr]
        case "ReplyItemDone":
            item = event.item  # type: ignore[union-attr]
            return f"agent ({item.status}): {item.text}" if item.kind == "message" else f"calls {item.name}"
        case "ReplyDone":
            reason = event.reason.partition(" (Its log")[0]  # type: ignore[union-attr]
            return f"reply {event.status} {reason}".strip()  # type: ignore[union-attr]
        case "ItemTruncated":
            return f"truncated at {event.audio_end_ms} ms"  # type: ignore[union-attr]
        case "CallEnded":
            return f"ended: {event.reason} {event.detail}".strip()  # type: ignore[union-attr]
        case "SpeechStarted" | "SpeechStopped":
            return "voice starts" if name == "SpeechStarted" else "voice stops"
        case "AgentChanged":
            return f"now with: {event.settings.agent.name}"  # type: ignore[union-attr]
        case "LanguageChanged":
            return f"now in: {event.language}"  # type: ignore[union-attr]
        case "KeyPressed":
            return f"key {event.key}"  # type: ignore[union-attr]
    return ""


def _reply(text: str) -> list[Delta]:
    before, *calls = text.split("call:")
    said: list[Delta] = [before] if before else []
    for number, call in enumerate(calls, 1):
        name, _, arguments = call.strip().partition(" ")
        said.append(ToolCall(f"c{number}", name, arguments))
    return said


RunTool = Callable[[Tool, ToolCall], Awaitable[str]]


async def play(
    scenario: Scenario, use: RunTool | None = None, keys: list[str] | None = None,
    asks: Callable[[Call], Coroutine[Any, Any, None]] | None = None, tells: Callable[[Tell], None] | None = None,
) -> Recording:  # fmt: skip
    """`use` runs the agent's tools, and `tells` what they say of their progress, from when each begins; `keys` gets
    what each use of one was known by; `asks` is a client's part."""
    delays = scenario.delays
    replies = {said: _reply(text) for said, text in scenario.replies.items()}
    llm = ScriptedLlm(replies, delays.first_token_ms, delays.token_ms, delays.llm_stalls_after, delays.llm_fails)
    asr = TellingAsr(scenario.hears, delays.settle_ms, delays.settle_ms, tells=scenario.tells)
    tts = ScriptedTts(first_ms=delays.tts_ms, rate=RATE, stalls_at=delays.tts_stalls_at)
    turn = (
        None
        if scenario.voice_complete is None
        else ScriptedTurnModel(scenario.voice_complete, delays.voice_complete_ms)
    )
    engines = Engines(MusicalVad() if scenario.plays else ScriptedVad(), asr, llm, tts, turn)
    agent = msgspec.convert({"name": "scenario", "no_input": [], **scenario.agent}, Agent)
    setup_ms = 300 if scenario.lead_ms else 0
    line = ScenarioLine(scenario, lead_ms=scenario.lead_ms, setup_ms=setup_ms, transfers=bool(scenario.transfers))
    events: list[tuple[float, CallEvent]] = []

    async def run_tool(tool: Tool, call: ToolCall, about: Mapping[str, Any]) -> str:
        if use:
            return await use(tool, call)
        await asyncio.sleep(1 if tool.name == "slow" else 0)
        caller = f" for {about['caller']} in {about['id']}" if about["caller"] else ""
        return f"{tool.name} did {call.arguments}{caller}"

    def begin_tool(tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str, tell: Tell) -> "asyncio.Task[str]":
        if keys is not None:
            keys.append(key)
        if tells:
            tells(tell)
        return asyncio.ensure_future(run_tool(tool, call, about))

    settings = msgspec.convert(scenario.settings, Overlay).over(CallSettings.of(agent))
    others = {name: msgspec.convert({"name": name, **keys}, Agent) for name, keys in scenario.colleagues.items()}

    def colleagues(name: str) -> CallSettings | None:
        return CallSettings.of(others[name]) if name in others else None

    story: list[str] = []

    def emit(event: CallEvent) -> None:
        events.append((line.now_ms(), event))
        if words := told(event):
            story.append(words)

    config, clock = msgspec.convert(scenario.config, Config), asyncio.get_running_loop().time
    call = Call("rtc_1", line, settings, engines, config, CallServices(begin_tool, colleagues), emit, clock)
    refused: list[str] = []
    async with asyncio.TaskGroup() as group:
        clients = [group.create_task(_do(does, n, call, refused)) for n, does in enumerate(scenario.does)]
        clients += [group.create_task(asks(call))] if asks else []
        clients += [group.create_task(_press(presses, call)) for presses in scenario.keys]
        await call.run()
        for client in clients:
            client.cancel()
    return Recording(scenario, line, events, story, asr, llm, tts, call, refused)


async def _press(presses: Presses, call: Call) -> None:
    await asyncio.sleep(presses.at_ms / 1000 + 0.001)
    for key in presses.keys:
        call.press(key)
        await asyncio.sleep(presses.every_ms / 1000)


async def _do(does: Does, number: int, call: Call, refused: list[str]) -> None:
    # After the block of the same time, and those of the same time in the order in which they are listed.
    await asyncio.sleep(does.at_ms / 1000 + 0.001 + number * 1e-6)
    try:
        match does.what:
            case "respond":
                call.respond(ReplyRequest(modality=does.modality))
            case "respond_beside":
                call.respond(ReplyRequest(conversation="none", input=(Item("beside", text=does.text),)))
            case "cancel":
                call.cancel_reply(None)
            case "commit":
                call.commit_input()
            case "clear":
                call.clear_input()
            case "transfer":
                call.transfer(does.text)
            case "message":
                call.add_item(Item(f"client_{does.at_ms}", text=does.text), None)
            case "output":
                called = [item.call_id for item in call.items() if item.kind == "function_call"]
                output = Item(f"client_{does.at_ms}", "function_call_output", call_id=called[-1], output=does.text)
                call.add_item(output, None)
            case "truncate_first" | "truncate_last":
                spoken = [item for item in call.items() if item.role == "assistant"] or [Item("nothing was said")]
                call.truncate(spoken[0 if does.what == "truncate_first" else -1].id, does.ms)
    except CallError as error:
        refused.append(type(error).__name__)


class Overlay(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The keys of CallSettings that scenarios change."""

    turn_detection: Literal["semantic", "server", "none"] = "semantic"
    silence_ms: int = 500
    modality: Literal["audio", "text"] = "audio"
    create_response: bool = True
    interrupt_response: bool = True
    tools: tuple[str, ...] = ()
    max_tokens: int | None = None
    tool_choice: str = "auto"
    origin: Origin = Origin()

    def over(self, settings: CallSettings) -> CallSettings:
        detection = {
            "semantic": SemanticVad(create_response=self.create_response, interrupt_response=self.interrupt_response),
            "server": ServerVad(silence_ms=self.silence_ms, create_response=self.create_response),
            "none": None,
        }[self.turn_detection]
        tools = tuple(ToolSpec(name) for name in self.tools)
        changes: dict[str, Any] = {"turn_detection": detection, "modality": self.modality, "tools": tools}
        changes |= {"tool_choice": self.tool_choice}
        return msgspec.structs.replace(settings, **changes, max_tokens=self.max_tokens, origin=self.origin)

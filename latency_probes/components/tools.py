"""How soon callers hear what a slow tool has found: one that only reads (`reads_only`), beside the same one that waits
until the turn is over.

Real calls to a PoP with the default recogniser and voice. The language model is a server of the OpenAI kind in this
process. It calls the tool at once with what the caller's words are about (a topic, days, numbers), as a model
does that fills in arguments, and says at once what the tool has answered.
"""

import asyncio
import json
import re
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from rich.table import Table
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from latency_probes.components import children
from latency_probes.measure import answer_of, judge_call, response_of
from latency_probes.plan import Plan, make_plan
from latency_probes.realtime import RealtimeCaller, endpoint, idle_frames
from latency_probes.records import CallRecord
from latency_probes.run import Runner
from voicepipe.base.errors import ProbeError
from voicepipe.base.figures import for_tables, keep, percentile

SEED = 7
WITHIN_MS = 300.0
"""Aim: so soon after the turn's end (commit) the result is heard ..."""
SHARE = 0.8
"""... in so many of the turns."""
AGENT = """
name = "{name}"
instructions = "Look everything up."
acknowledgement = ""
[[tools]]
name = "look_up"
description = "What is known of it."
reads_only = {reads_only}
webhook = {{ url = "{url}/look_up" }}
parameters = {{ type = "object", required = ["words"], properties = {{ words = {{ type = "string" }} }} }}
"""
CONFIG = """
[pop]
agents = "{folder}"
default_agent = "reads"
budget_ms = 60000
loop_lag_ms = 60000
[engines]
llm = "openai"
[openai]
base_url = "{url}/v1"
model = "scripted"
"""
TOPICS = {
    "lunch": "lunch",
    "dinner": "dinner|course|charge",
    "table": "table|reserv|book",
    "address": "street|address|where",
    "parking": "park|car",
    "hours": "open|clos|shut|hours|late|kitchen|sunday",
    "person": "person|manager|someone|somebody",
}
"""What callers ask for, and the words by which it is known; the first one counts."""
DETAILS = re.compile(r"\b(\w+day|tomorrow|tonight|noon|one|two|three|four|five|six|seven|eight|nine|ten)s?\b")
READS, WAITS = "reads", "waits"
"""The agents: the tool of the first one only reads."""


class ToolTurn(msgspec.Struct):
    """One turn whose answer told what the tool has found. Times are ms after the caller's last voiced sample."""

    agent: str
    id: str
    commit_ms: float
    heard_ms: float
    """The first audible packet of the answer, by the server's stamps."""
    gap_ms: float | None
    """The same, as the caller heard it."""
    began_ms: float
    """When the tool was begun; below 0: while the caller spoke."""
    dropped: int
    """Runs that were begun for this turn, and for nothing."""
    cut_in: bool

    @property
    def after_ms(self) -> float:
        """From the turn's end to the first audible packet."""
        return self.heard_ms - self.commit_ms


class AgentFigures(msgspec.Struct):
    """What the turns of one agent make together. Milliseconds."""

    turns: int
    within: float
    """Share of the turns whose answer was heard within 300 ms of the turn's end."""
    after_commit: tuple[float, float]
    """p50 and p95 of the time from the turn's end to the answer."""
    latency: tuple[float, float]
    """p50 and p95 of turn latency."""
    gap: tuple[float, float]
    """p50 and p95 of the heard gap."""
    begun_before_commit: tuple[float, float]
    """How long before the turn's end the tool was begun, p50 and p95."""
    dropped: int
    cut_ins: int


class _Server:
    """The language model and the tool, by HTTP."""

    def __init__(self, takes_ms: float) -> None:
        self._takes_s = takes_ms / 1000
        self.lookups = 0
        self.app = Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/look_up", self._look_up, methods=["POST"]),
            ]
        )

    async def _models(self, _: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def _look_up(self, _: Request) -> Response:
        self.lookups += 1
        await asyncio.sleep(self._takes_s)
        return PlainTextResponse("It is forty-two.")

    async def _complete(self, request: Request) -> Response:
        try:
            last = (await request.json())["messages"][-1]
        except ClientDisconnect:  # The caller went on before the request was read.
            return Response()
        if last["role"] == "tool":
            deltas: list[dict[str, Any]] = [{"content": f"{last['content']} "}, {"content": "Anything else?"}]
        else:
            words = str(last["content"]).lower()
            topic = next((name for name, known in TOPICS.items() if re.search(known, words)), "")
            asked = json.dumps({"words": " ".join([topic, *DETAILS.findall(words)])})
            asks = {"name": "look_up", "arguments": asked}
            deltas = [{"tool_calls": [{"index": 0, "id": "call_0", "type": "function", "function": asks}]}]
            if not topic:
                deltas = [{"content": "I see. "}, {"content": "Anything else?"}]
        choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        shared = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        lines = "".join(f"data: {json.dumps(shared | {'choices': [choice]})}\n\n" for choice in choices)
        return Response(f"{lines}data: [DONE]\n\n", media_type="text/event-stream")


class _Listening(Runner):
    """Keeps of each turn what its tool took, too."""

    def listen(self) -> "_Listening":
        self.tool_turns: list[ToolTurn] = []
        return self

    def _keep(self, record: CallRecord) -> None:
        super()._keep(record)
        self.tool_turns += _tool_turns(record)


def _tool_turns(record: CallRecord) -> Iterator[ToolTurn]:
    line = record.timeline
    for result, said in zip(judge_call(record, {}), record.said, strict=True):
        answer = answer_of(said, line, line.sent_at(said.start + said.speech.voiced[1] - 1))
        metadata = (response_of(line, answer.response_id).get("metadata") or {}) if answer else {}
        stages, use = result.stages, json.loads(metadata.get("voicepipe.tool.1", "{}"))
        if "at_commit" in stages and "turn_latency" in stages and use.get("at") is not None:
            yield ToolTurn(
                agent=agent_of(record.plan.number), id=result.id,
                commit_ms=stages["at_commit"], heard_ms=stages["turn_latency"], gap_ms=result.gap_ms,
                began_ms=float(use["at"]), dropped=int(stages.get("tools_dropped", 0)), cut_in=result.cut_in,
            )  # fmt: skip


def agent_of(number: int) -> str:
    """The agent of a call: both take turns with the same calls."""
    return READS if number % 2 else WAITS


async def run(calls: int, takes_ms: int, json_file: Path | None) -> int:
    """Measure and print; 1 if the aim is missed. Raises ConfigError: the PoP does not start; ProbeError: no call could
    be placed, no turn was measured, or `json_file` cannot be written."""
    console, server = for_tables(), _Server(takes_ms)
    drawn = make_plan(["finished"], SEED, calls).calls
    plan = Plan((), tuple(replace(call, number=2 * at + way) for at, call in enumerate(drawn, 1) for way in (0, 1)))
    with tempfile.TemporaryDirectory() as folder, console.status(f"{2 * calls} calls ..."):
        async with _served(server) as url:
            config = _files(Path(folder), url)
            async with children.serving("-m", "voicepipe", "pop", "--config", str(config), "--port", "0") as child:
                turns = await _measure(child.url, plan)
    figures = {agent: _figures([turn for turn in turns if turn.agent == agent]) for agent in (READS, WAITS)}
    table = Table(title=f"a tool that takes {takes_ms} ms, {calls} calls to each agent")
    for column in ("ms, p50 and p95", "it only reads", "it waits for the turn's end"):
        table.add_column(column, justify="left" if column.startswith("ms") else "right")
    for name, cell in ROWS.items():
        table.add_row(name, *(cell(figures[agent]) for agent in (READS, WAITS)))
    console.print(table)
    console.print(f"{server.lookups} lookups")
    keep(json_file, {"figures": figures, "lookups": server.lookups, "turns": turns})
    return 0 if figures[READS].within >= SHARE else 1


def _pair(times: tuple[float, float]) -> str:
    return f"{times[0]:.0f}, {times[1]:.0f}"


ROWS: dict[str, Callable[[AgentFigures], str]] = {
    "turns": lambda seen: f"{seen.turns}",
    "from the turn's end to the result": lambda seen: _pair(seen.after_commit),
    f"within {WITHIN_MS:.0f} ms of it": lambda seen: f"{100 * seen.within:.0f} %",
    "turn latency": lambda seen: _pair(seen.latency),
    "heard gap": lambda seen: _pair(seen.gap),
    "begun so long before the turn's end": lambda seen: _pair(seen.begun_before_commit),
    "runs that were dropped": lambda seen: f"{seen.dropped}",
    "cut-ins": lambda seen: f"{seen.cut_ins}",
}


def _middle_and_slow(times: Sequence[float]) -> tuple[float, float]:
    return percentile(times, 50) or 0.0, percentile(times, 95) or 0.0


def _figures(turns: Sequence[ToolTurn]) -> AgentFigures:
    if not turns:
        raise ProbeError("no turn of one agent was answered by its tool: place more calls")
    return AgentFigures(
        turns=len(turns),
        within=sum(turn.after_ms <= WITHIN_MS for turn in turns) / len(turns),
        after_commit=_middle_and_slow([turn.after_ms for turn in turns]),
        latency=_middle_and_slow([turn.heard_ms for turn in turns]),
        gap=_middle_and_slow([turn.gap_ms for turn in turns if turn.gap_ms is not None]),
        begun_before_commit=_middle_and_slow([turn.commit_ms - turn.began_ms for turn in turns]),
        dropped=sum(turn.dropped for turn in turns),
        cut_ins=sum(turn.cut_in for turn in turns),
    )


def _files(folder: Path, url: str) -> Path:
    """The PoP's configuration and its agents, written there."""
    agents = folder / "agents"
    agents.mkdir()
    for name in (READS, WAITS):
        text = AGENT.format(name=name, reads_only=str(name == READS).lower(), url=url)
        (agents / f"{name}.toml").write_text(text)
    config = folder / "pop.toml"
    config.write_text(CONFIG.format(folder=agents, url=url))
    return config


@asynccontextmanager
async def _served(server: _Server) -> AsyncIterator[str]:
    """Its address, while it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = uvicorn.Server(uvicorn.Config(server.app, log_level="warning", lifespan="off"))
        task = asyncio.create_task(serving.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            serving.should_exit = True
            await task


async def _measure(url: str, plan: Plan) -> list[ToolTurn]:
    for call in plan.calls:
        idle_frames(call.noise, SEED)
    ways = {agent: endpoint(url, agent) for agent in (READS, WAITS)}
    runner = _Listening(
        lambda call: RealtimeCaller(ways[agent_of(call.number)], call.noise, SEED), SEED, 1, lambda: None
    ).listen()
    await runner.run(plan)
    return runner.tool_turns

"""Agent tools as tests use them."""

import asyncio
import itertools

from voicepipe.agent import Tool
from voicepipe.tools import ToolRunner
from voicepipe.turn.prompt import ToolCall

USES = itertools.count(100)
ABOUT = {"id": "rtc_1", "caller": "+4930123456", "called": "", "headers": {"X-Account": "42"}}


def call(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall("call_1", name, arguments)


def used(
    tools: ToolRunner, tool: Tool, call: ToolCall, key: str = "", tenant: str = "acme", by: str = "rtc_1"
) -> "asyncio.Task[str]":
    """Begun for a use of its own, unless `key` names one. `by`: whose call it is for."""
    return tools.begin(tool, call, ABOUT | {"id": by}, key or f"use_{next(USES)}", tenant)

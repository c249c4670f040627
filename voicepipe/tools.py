"""Runs an agent's tools: webhooks and Python functions. Whatever goes wrong is a text for the model (ToolError)."""

import asyncio
import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, Self

import httpx
import msgspec

from voicepipe.agent import Tool, Webhook
from voicepipe.engines.worker import Worker
from voicepipe.errors import ToolError
from voicepipe.turn.prompt import ToolCall

RESULT_CHARS = 8000
"""A longer result is cut: it has to fit into the model's context."""

THREADS = 16
"""Functions that run at a time. Threads of their own: one that hangs must not hold up anything but other tools."""

BODY_BYTES = 256 * 1024
"""A webhook's answer is not read any further than this."""


class ToolRunner:
    """The tools of all calls of a PoP; one HTTP client. A context manager."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._client: httpx.AsyncClient | None = None
        self._threads = Worker("tool", THREADS)

    async def __aenter__(self) -> Self:
        self._client = await asyncio.to_thread(self._connect)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None
        self._threads.close()

    def _connect(self) -> httpx.AsyncClient:
        # In a thread: reading the certificate store takes 20-50 ms. Redirects could lead to hosts nobody configured.
        return httpx.AsyncClient(transport=self._transport, follow_redirects=False)

    async def run(self, tool: Tool, call: ToolCall, about: Mapping[str, Any]) -> str:
        """The result as text for the model, at most 8000 characters. Takes at most `tool.timeout_ms`. `about` is what
        the tool is told of the phone call, `Studio.about`.

        Raises ToolError, whose text the model can read, when the arguments are no JSON object, the tool fails, or it
        takes too long. A function that runs in a thread cannot be stopped: it is left behind.
        """
        arguments = parse(call.arguments)
        try:
            async with asyncio.timeout(tool.timeout_ms / 1000):
                if tool.webhook is not None:
                    return shorten(await self._post(tool.webhook, call, arguments, about))
                return shorten(text(await self._apply(tool, arguments, about)))
        except TimeoutError:
            raise ToolError(f"{tool.name} took longer than {tool.timeout_ms} ms") from None

    async def _post(self, webhook: Webhook, call: ToolCall, arguments: dict[str, Any], about: Mapping[str, Any]) -> str:
        if self._client is None:
            raise ToolError(f"{call.name} cannot be called: the tools have been closed")
        body = {"name": call.name, "arguments": arguments, "call_id": call.call_id, "call": about}
        try:
            async with self._client.stream("POST", webhook.url, json=body, headers=webhook.headers) as response:
                if not response.is_success:
                    raise ToolError(f"{call.name} answered with HTTP status {response.status_code}")
                return (await _read(response)).decode(response.encoding or "utf-8", "replace")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # The URL may hold a secret: the model gets the kind of failure, not the address.
            raise ToolError(f"{call.name} could not be reached ({type(error).__name__})") from error

    async def _apply(self, tool: Tool, arguments: dict[str, Any], about: Mapping[str, Any]) -> Any:
        """Call the tool's function, in a thread unless it is async."""
        function = await self._threads.submit(load, tool)
        signature = inspect.signature(function)
        if "call" in signature.parameters and "call" not in tool.parameters.get("properties", {}):
            arguments = {**arguments, "call": about}
        try:
            signature.bind(**arguments)
        except TypeError as error:
            raise ToolError(f"{tool.name} was called with wrong arguments: {error}") from None
        try:
            if inspect.iscoroutinefunction(function):
                return await function(**arguments)
            return await self._threads.submit(function, **arguments)
        except (ToolError, TimeoutError):
            raise
        except Exception as error:
            raise ToolError(f"{tool.name} failed: {error}") from error


async def _read(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= BODY_BYTES:
            break
    return body[:BODY_BYTES]


def load(tool: Tool) -> Callable[..., Any]:
    """The function behind `module:function`. Raises ToolError. Imports, so not for the event loop."""
    module, colon, name = tool.function.partition(":")
    try:
        function = getattr(importlib.import_module(module), name) if colon and module and name else None
    except (ImportError, AttributeError) as error:
        raise ToolError(f"{tool.name} is not there: {error}") from error
    if not callable(function):
        raise ToolError(f'{tool.name} has no function: expected "module:function", got "{tool.function}"')
    return function  # type: ignore[no-any-return]


def parse(arguments: str) -> dict[str, Any]:
    """The arguments of a call: a JSON object, or {} for an empty text. Raises ToolError."""
    try:
        parsed = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        raise ToolError("the arguments are not valid JSON") from None
    if not isinstance(parsed, dict):
        raise ToolError("the arguments are not a JSON object")
    return parsed


def text(result: Any) -> str:
    """A function's result as the model reads it: text as it is, None as "", everything else as JSON."""
    if isinstance(result, str):
        return result
    if result is None:
        return ""
    try:
        return msgspec.json.encode(result).decode()
    except (TypeError, ValueError, msgspec.MsgspecError):
        return str(result)


def shorten(result: str) -> str:
    """At most 8000 characters."""
    return result if len(result) <= RESULT_CHARS else result[: RESULT_CHARS - 1] + "…"

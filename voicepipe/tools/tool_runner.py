"""Runs an agent's tools: webhooks and Python functions. Whatever goes wrong is a text for the model (ToolError).

A tool that was begun belongs to the PoP, not to the reply or the call that asked for it: it runs to its end or its
time limit, and a PoP that is shut down waits a while for what still runs.
"""

import asyncio
import codecs
import json
import logging
import re
from collections.abc import Mapping
from typing import Any, Self

import httpx

from voicepipe.agent import Tool, Webhook
from voicepipe.base.errors import OutcomeUnknown, ToolError
from voicepipe.base.queues import QueueFigures, QueueOutcomes, show
from voicepipe.base.token_bucket import FairShare
from voicepipe.base.trust import for_http, refusal
from voicepipe.base.web_answer import PLAIN, whole
from voicepipe.base.worker import Worker
from voicepipe.conversation.prompt import ToolCall
from voicepipe.tools.python_tools import PythonTools, shorten, too_long
from voicepipe.tools.tool_arguments import fitting, has_patterns, parse

log = logging.getLogger(__name__)
BODY_BYTES = 256 * 1024
"""A webhook's answer is not read any further than this."""
MOST = 256
"""Tools that run at a time, also those whose calls have ended: each webhook has a connection, and a server that is slow
must not leave other callers without. A tenant has at most as many of them as are free."""
NO_CHARSETS = {"punycode", "idna"}
"""Encodings of host names, which no body has. Decoding punycode takes a time that grows by the square."""
_checker = Worker("tool arguments", nice=0)
"""Holds long arguments against their schema, which may take 60 ms."""
AT_ONCE_CHARS = 2000
"""Shorter ones take 0.2 ms."""
FINISH_S = 10.0
"""Tools that still run when the last call has ended may run for so long once the PoP is shut down."""
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL)
"""Nothing of the request has left us."""
HOST = re.compile(r"[\w+.-]+://(?:[^/?#]*@)?([^/?#]+)")
"""The host of a URL, without the user and password that may precede it."""
PERHAPS_DONE = (302, 303, 408)
"""Statuses below 500 after which nobody knows: what came of it stands elsewhere (web frameworks redirect so once a form
was taken), or the server has a time limit of its own."""


class ToolRunner:
    """Runs the tools of all calls of a PoP, with one HTTP client. A context manager; leaving it waits for running
    tools. `ca`: as `trust.trusting`."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None, ca: str = "") -> None:
        self._transport = transport
        self._ca = ca
        self._client: httpx.AsyncClient | None = None
        self.functions = PythonTools()
        self._begun: dict[asyncio.Task[Any], str] = {}
        """Running tools and hooks, and their names for the log."""
        self._running = FairShare(MOST)
        """Running tools, by tenant."""
        self._waits = QueueOutcomes()
        show(self)

    def figures(self) -> QueueFigures:
        """As `queues.Queue`. No tool waits: it begins, or is refused."""
        return self._waits.figures("tools", waiting=0, running=self._running.busy, limit=MOST)

    async def __aenter__(self) -> Self:
        self._client = await asyncio.to_thread(self._connect)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._begun:
                log.warning("tools still running: %s; they have %g s to end", ", ".join(self._begun.values()), FINISH_S)
                await asyncio.wait(self._begun, timeout=FINISH_S)
        finally:
            for task, name in self._begun.items():
                log.error("%s was not done when the server ended; nobody knows whether it will be", name)
                task.cancel()
            if left := self.hanging():
                log.error("%d functions of tools hang, and end with the process", left)
            if self._client is not None:
                await self._client.aclose()
                self._client = None

    def hanging(self) -> int:
        """How many functions run, also those that nobody waits for any more."""
        return self.functions.left()

    @property
    def client(self) -> httpx.AsyncClient | None:
        """The HTTP client for code of agents' owners, without a time limit of its own; None: the PoP is being shut
        down."""
        return self._client

    def outlives_call(self, task: "asyncio.Task[Any]", name: str) -> None:
        """Have a shutdown wait for this task as for a running tool. `name`: for the log."""
        self._begun[task] = name
        task.add_done_callback(self._begun.pop)

    def _connect(self) -> httpx.AsyncClient:
        # In a thread: reading the certificate store takes 20-50 ms. Redirects could lead to hosts nobody configured.
        # A tool's own time limit is the only one, and one agent's slow servers may not take all connections.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        # A compressed answer may become a thousand times as long at one stroke.
        headers = {**PLAIN, "Content-Type": "application/json"}
        return httpx.AsyncClient(
            transport=self._transport,
            follow_redirects=False,
            timeout=None,
            limits=limits,
            headers=headers,
            verify=for_http(self._ca),
        )

    def begin(self, tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str, tenant: str) -> "asyncio.Task[str]":
        """Run the tool as a task of the PoP: `tool_runs.BeginTool`. `tenant`: whose call it is for."""
        if not self._running.may(tenant):
            self._waits.refused += 1
            return asyncio.create_task(self._refused(tool, tenant))
        task = asyncio.create_task(self._run(tool, call, about, key, tenant))
        self._begun[task] = f"{tool.name} of {about['id']}"
        self._running.take(tenant)
        self._waits.began(0.0)

        def over(task: "asyncio.Task[str]") -> None:
            del self._begun[task]
            self._running.give_back(tenant)

        task.add_done_callback(over)
        return task

    async def _refused(self, tool: Tool, tenant: str) -> str:
        """Raises ToolError: too many run."""
        busy = self._running.busy
        log.error("%s: not begun for %s, %d tools run; the others are for other tenants", tool.name, tenant, busy)
        raise ToolError(f"{tool.name} has too much to do at the moment; nothing was sent")

    async def _run(self, tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str, tenant: str) -> str:
        """The result as text for the model, at most 8000 characters. Takes at most `tool.timeout_ms`. `about`: the
        phone call, as `CallContext.about` has it; `key`: as `tool_runs.BeginTool` has it.

        Raises ToolError when the arguments are no JSON object, do not fit the tool's parameters, or cannot be sent to a
        webhook; when the tool fails, or takes too long.
        """
        at_once = len(call.arguments) <= AT_ONCE_CHARS and not has_patterns(tool.parameters)
        arguments = _checked(tool, call) if at_once else await _checker.submit(_checked, tool, call)
        if tool.webhook is None:
            return await self.functions.call(tool, arguments, about, tenant)
        body = _encoded({"name": call.name, "arguments": arguments, "call_id": call.call_id, "call": about})
        way = _RequestProgress()
        try:
            async with asyncio.timeout(tool.timeout_ms / 1000):
                return shorten(await self._ask(tool.name, tool.webhook, body, key, way))
        except TimeoutError:
            if way.sent:
                raise too_long(tool) from None
            log.error("%s could not be reached within %d ms", tool.name, tool.timeout_ms)
            raise ToolError(f"{tool.name} could not be reached within {tool.timeout_ms} ms; nothing was sent") from None

    async def _ask(self, name: str, webhook: Webhook, body: bytes, key: str, way: "_RequestProgress") -> str:
        """Post the request. A server that cannot be reached is connected to once more, within the same try: nothing was
        sent."""
        try:
            return await self._post(name, webhook, body, key, way)
        except NOT_SENT:
            pass
        try:
            return await self._post(name, webhook, body, key, way)
        except NOT_SENT as error:
            # The URL may hold a secret: the log gets its host, the model not even that.
            host = HOST.match(webhook.url)
            where = f" at {host[1]}" if host else ""
            if why := refusal(error):
                log.error("%s could not be reached%s: %s", name, where, why)
            else:
                log.error("%s could not be reached%s (%s): is its server up?", name, where, type(error).__name__)
            raise ToolError(f"{name} could not be reached") from None

    async def _post(self, name: str, webhook: Webhook, body: bytes, key: str, way: "_RequestProgress") -> str:
        if self._client is None:
            raise ToolError(f"{name} cannot be called: the server is being shut down")
        # A string in quotes: draft-ietf-httpapi-idempotency-key-header, section 2.1.
        headers = {**webhook.headers, "Idempotency-Key": f'"{key}"'}
        request = self._client.stream(
            "POST", webhook.url, content=body, headers=headers, extensions={"trace": way.trace}
        )
        try:
            async with request as response:
                if response.is_server_error or response.status_code in PERHAPS_DONE:
                    raise OutcomeUnknown(f"{name} answered with HTTP status {response.status_code}")
                if not response.is_success:
                    raise ToolError(f"{name} answered with HTTP status {response.status_code}")
                return _decoded(await whole(response, BODY_BYTES), response.charset_encoding)
        except httpx.DecodingError as error:
            log.error("the answer of %s cannot be read: %s, although it was asked not to be", name, error)
            raise OutcomeUnknown(f"the answer of {name} cannot be read; nobody knows whether it was done") from None
        except NOT_SENT:
            raise
        except httpx.HTTPError as error:
            log.error("the connection to %s broke (%s)", name, type(error).__name__)
            raise OutcomeUnknown(f"the connection to {name} broke; nobody knows whether it was done") from None


class _RequestProgress:
    """How far a request has come, by httpx's trace events."""

    def __init__(self) -> None:
        self.sent = True
        """Something of it may have left us; not as long as the host is looked up, connected to, or shakes hands."""

    async def trace(self, event: str, _: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.started":
            self.sent = False
        elif event.endswith(".send_request_headers.started"):
            self.sent = True


def _decoded(body: bytes, charset: str | None) -> str:
    """The body as text; as UTF-8 where the charset is unknown."""
    try:
        if charset and codecs.lookup(charset).name not in NO_CHARSETS:
            return body.decode(charset, "replace")
    except (LookupError, ValueError):
        pass
    return body.decode("utf-8", "replace")


def _checked(tool: Tool, call: ToolCall) -> dict[str, Any]:
    """The call's arguments, as the tool gets them. Raises ToolError."""
    return fitting(tool.parameters, parse(call.arguments))


def _encoded(body: dict[str, Any]) -> bytes:
    """A webhook's body. Raises ToolError, before anything is sent: Python reads numbers and halves of characters out of
    JSON that no JSON can hold."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise ToolError("the arguments hold what JSON cannot; nothing was sent") from None

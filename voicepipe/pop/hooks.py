"""Calls the hooks of agents, which are URLs or Python functions, each within its time limit."""

import asyncio
import logging
import secrets
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import msgspec

from voicepipe.agent import Agent, Tool
from voicepipe.base.errors import ConfigError, OutcomeUnknown, ToolError, VoicepipeError
from voicepipe.base.ranges import is_url
from voicepipe.base.secret_source import SecretSource
from voicepipe.base.token_bucket import FairShare
from voicepipe.base.trust import refusal
from voicepipe.base.web_answer import whole
from voicepipe.call_api import CallSlot, HookOutcome, HookRun
from voicepipe.records import signing
from voicepipe.tools.tool_runner import ToolRunner

log = logging.getLogger(__name__)

ANSWER_BYTES = 64 * 1024
"""Longest answer of a hook; a longer one is refused."""
MOST = 256
"""Hooks that run at a time. A tenant has at most as many of them as are free."""

AFTER_CALL_MS = 15_000
ANSWERED: HookOutcome = "answered"


class HookFailed(VoicepipeError):
    """A hook gave no answer. The text says why, and what helps."""

    def __init__(self, why: str, outcome: HookOutcome = "error") -> None:
        super().__init__(why)
        self.outcome = outcome


@contextmanager
def noted(slot: CallSlot, agent: Agent, key: str) -> Iterator[None]:
    """Within the context a hook of this agent's is asked about a call before it is answered. The call's record says how
    that went; a failure ends with the context, and the log says that the agent answers by its file alone."""
    began, outcome, why = time.monotonic(), ANSWERED, ""
    try:
        yield
    except HookFailed as error:
        outcome, why = error.outcome, str(error)
        text = "%s: hooks.%s of %s: %s (the agent answers as its file says)"
        log.warning(text, slot.call_id, key, agent.name, why)
    ms = round((time.monotonic() - began) * 1000, 1)
    slot.hook_has_run(HookRun(agent=agent.name, outcome=outcome, ms=ms, why=why))


class Hook(NamedTuple):
    """One hook of an agent."""

    key: str
    """Its key in the agent's file."""
    target: str
    """A URL, or `module:function`."""
    limit_ms: int
    event: str = ""
    """What a URL reads as "event"."""
    secret: SecretSource = SecretSource()
    """Signs what is sent to a URL; none: it is sent unsigned."""
    is_cut_short: bool = False
    """The caller's door waits for less time than the agent's file allows."""

    def within(self, limit_ms: int | None) -> "Hook":
        """This hook, with `limit_ms` at most; None: with its own limit."""
        if limit_ms is None or limit_ms >= self.limit_ms:
            return self
        return self._replace(limit_ms=limit_ms, is_cut_short=True)

    @property
    def time(self) -> str:
        """The limit, for people."""
        return f"{self.limit_ms} ms" + (", the most that a caller may wait here" if self.is_cut_short else "")

    @property
    def may_be_given_more(self) -> bool:
        """Whether the agent's file has a key by which its limit can be raised."""
        return self.key in ("before_call", "incoming_call") and not self.is_cut_short


class HookCaller:
    """Calls hooks for all calls of a PoP: by HTTP with the client of its tools, or as functions within their limits of
    threads."""

    def __init__(self, tools: ToolRunner) -> None:
        self._tools = tools
        self._running = FairShare(MOST)
        """Hooks that run, by tenant."""

    async def ask(self, hook: Hook, given: dict[str, Any], call_id: str, tenant: str) -> str:
        """Call the hook about a call, with what is `given`: as JSON with `hook.event`, or as keywords. Returns its
        answer as text, at most 64 KiB. Takes `hook.limit_ms` at most. Raises HookFailed."""
        with self._counted(hook, call_id, tenant):
            if is_url(hook.target):
                return await self._by_http(hook, msgspec.json.encode({"event": hook.event, **given}), _message_id())
            return await self._as_function(hook, given, call_id, tenant)

    def begin_post(self, hook: Hook, body: bytes, message_id: str, call_id: str, tenant: str) -> "asyncio.Task[None]":
        """Post a body of another convention's to the hook's URL, as a task of the PoP. It takes `hook.limit_ms` at
        most, and raises HookFailed."""

        async def run() -> None:
            with self._counted(hook, call_id, tenant):
                await self._by_http(hook, body, message_id)

        task = asyncio.create_task(run())
        self._tools.outlives_call(task, f"{hook.key} of {call_id}")
        return task

    @contextmanager
    def _counted(self, hook: Hook, call_id: str, tenant: str) -> Iterator[None]:
        """Count a hook that runs in this context. Raises HookFailed: too many do; or for whatever goes wrong within."""
        if not self._running.may(tenant):
            busy = self._running.busy
            raise HookFailed(f"{busy} hooks run, and the others are for other tenants: answer them faster")
        self._running.take(tenant)
        try:
            yield
        except HookFailed:
            raise
        except Exception as error:  # A fault of ours, or words of the caller's that no JSON can hold.
            log.exception("%s: hooks.%s failed", call_id, hook.key)
            raise HookFailed(f"it could not be called ({type(error).__name__}): its traceback is in the log") from None
        finally:
            self._running.give_back(tenant)

    def begin(self, job: Coroutine[Any, Any, None], name: str) -> None:
        """Carry out what a call does not wait for. A PoP that is shut down waits for it; `name`: for the log then."""
        self._tools.outlives_call(asyncio.create_task(job), name)

    def tell_record(self, function: str, record: dict[str, Any]) -> None:
        """Call the function of a `hooks.after_call` with the record of a call that has ended, once."""
        hook, call_id = Hook("after_call", function, AFTER_CALL_MS), str(record["id"])

        async def tell() -> None:
            try:
                await self.ask(hook, {"record": record}, call_id, str(record["tenant"]))
            except HookFailed as error:
                log.warning("%s: hooks.after_call: %s (a function is called once)", call_id, error)

        self.begin(tell(), f"after_call of {call_id}")

    async def _as_function(self, hook: Hook, given: dict[str, Any], call_id: str, tenant: str) -> str:
        tool = Tool(name=hook.key, function=hook.target, timeout_ms=hook.limit_ms)
        try:
            answer = await self._tools.functions.call_hook(tool, given, call_id, tenant)
        except OutcomeUnknown:
            raise HookFailed(_too_slow(hook), "timeout") from None
        except ToolError as error:
            raise HookFailed(_of_function(error, hook)) from None
        if len(answer.encode(errors="replace")) > ANSWER_BYTES:
            raise HookFailed(f"its answer is over {ANSWER_BYTES // 1024} KiB: shorten it")
        return answer

    async def _by_http(self, hook: Hook, body: bytes, message_id: str) -> str:
        host, client = urlsplit(hook.target).hostname, self._tools.client
        if client is None:
            raise HookFailed("the PoP is being shut down")
        try:
            async with asyncio.timeout(hook.limit_ms / 1000):
                headers = await _signed(hook, body, message_id)
                try:
                    return await _posted(client, hook.target, headers, body)
                except (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                    # A server may close a connection that we have kept at the moment in which we use it again. It may
                    # be asked twice, then: the id is the same.
                    return await _posted(client, hook.target, headers, body)
        except TimeoutError:
            raise HookFailed(_too_slow(hook), "timeout") from None
        except httpx.ConnectError as error:
            why = refusal(error) or "is its server up?"
            raise HookFailed(f"{host} cannot be reached: {why}") from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise HookFailed(f"{host} gives no answer that can be read ({type(error).__name__}): see its log") from None


def _message_id() -> str:
    return f"msg_{secrets.token_hex(12)}"


async def _signed(hook: Hook, body: bytes, message_id: str) -> dict[str, str]:
    """Raises HookFailed: the secret cannot be read."""
    if not hook.secret:
        return {"webhook-id": message_id}
    try:
        key = await asyncio.to_thread(signing.key_in, hook.secret)
    except ValueError as error:
        raise HookFailed(f"{hook.secret.key_at('hooks.secret')}: {error}") from None
    return signing.headers(key, message_id, time.time(), body)


async def _posted(client: httpx.AsyncClient, url: str, headers: dict[str, str], body: bytes) -> str:
    """The body of the answer. Raises httpx.HTTPError, HookFailed."""
    async with client.stream("POST", url, content=body, headers=headers) as response:
        if not response.is_success:
            raise HookFailed(f"{response.url.host} answers with HTTP status {response.status_code}: see its log")
        answer = await whole(response, ANSWER_BYTES + 1)
    if len(answer) > ANSWER_BYTES:
        raise HookFailed(f"its answer is over {ANSWER_BYTES // 1024} KiB: shorten it")
    return answer.decode(errors="replace")


def _of_function(error: ToolError, hook: Hook) -> str:
    """Why a function gave no answer."""
    raised = error.__context__
    if raised and str(error) == f"{hook.key} failed":
        return f"it raised {type(raised).__name__}: {str(raised)[:200]} (its traceback is in the log)"
    return str(raised) if isinstance(raised, ConfigError) else str(error)


def _too_slow(hook: Hook) -> str:
    raise_it = f", or raise hooks.{hook.key}_ms" if hook.may_be_given_more else ""
    return f"no answer within {hook.time}: answer faster{raise_it}"

"""Callers who know a directory's address alone: they ask it where to call, and call there with its token."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
import msgspec

from latency_probes.failed_call import CallFailed, code_of, refusal, unreachable
from latency_probes.realtime import origin, trusted
from latency_probes.timeline import Route, Timeline
from voicepipe.base.errors import ProbeError

T = TypeVar("T")
CALLS = "/v1/calls"
ASK_S = 10.0
LET_IN_S = 3.0
"""A candidate has so long to let a caller in; then the next one is tried."""
KINDS = ("websocket", "webrtc")
"""Of calls that directories place."""


class Candidate(msgspec.Struct, frozen=True):
    """One place where the caller may call."""

    pop: str
    url: str
    token: str
    turn_ms_est: float


class Told(msgspec.Struct, frozen=True):
    """The directory's answer; the best candidate first."""

    candidates: list[Candidate]
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class Via:
    """A directory, and what callers tell it."""

    url: str
    kind: str
    key: str = ""
    agent: str = ""
    place: tuple[float, float] | None = None
    """Latitude and longitude of the callers."""
    rtt_ms: Mapping[str, float] = field(default_factory=dict)
    """Round trips to PoPs, by their ids."""

    async def call(self, line: Timeline, enter: Callable[[str, str], Awaitable[T]]) -> T:
        """What `enter` makes of a candidate's address and token: of the first that lets the caller in. Where none
        does, the directory is asked once more. `line` is told which one it was.

        Raises ProbeError: no candidate takes the call, or the directory names none.
        """
        line.began = time.monotonic()
        refused: dict[str, ProbeError] = {}
        for asked in (1, 2):
            told = await self._asked_again(refused) if refused else await self.ask()
            for there in told.candidates:
                try:
                    entered = await let_in(enter, there)
                except ProbeError as error:
                    refused[there.pop] = error
                    continue
                line.route = Route(there.pop, there.url, there.turn_ms_est, told.degraded, asked, len(refused) + 1)
                return entered
        raise first_of(refused, f"no PoP that the directory names takes the call: {sentences(refused)}")

    async def ask(self, tried: tuple[str, ...] = ()) -> Told:
        """Where to call; not at PoPs that were `tried`. Raises ProbeError."""
        url = origin(self.url)
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            async with httpx.AsyncClient(verify=trusted(), trust_env=False, timeout=ASK_S) as client:
                answer = await client.post(f"{url}{CALLS}", json=self._question(tried), headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unreachable(url, error) from error
        if answer.status_code != httpx.codes.OK:
            code = code_of(answer.content) or f"http_{answer.status_code}"
            raise CallFailed(f"{refusal(url, answer.status_code)} ({said(answer)})", "refused", code)
        try:
            told = msgspec.json.decode(answer.content, type=Told)
        except msgspec.DecodeError as error:
            raise ProbeError(f"the answer of {url}{CALLS} is no directory's: {error}") from error
        if not told.candidates:
            raise CallFailed(f"the directory at {url} names no PoP", "refused", "no_pop")
        return told

    async def _asked_again(self, refused: Mapping[str, ProbeError]) -> Told:
        try:
            return await self.ask(tuple(refused))
        except ProbeError as error:
            raise first_of(refused, f"{error}; before that {sentences(refused)}") from error

    def _question(self, tried: tuple[str, ...]) -> dict[str, Any]:
        asked: dict[str, Any] = {"kind": self.kind, "rtt_ms": dict(self.rtt_ms), "tried": tried}
        if self.place:
            asked["place"] = {"latitude": self.place[0], "longitude": self.place[1]}
        return asked | ({"require": {"agent": self.agent}} if self.agent else {})


async def let_in(enter: Callable[[str, str], Awaitable[T]], there: Candidate) -> T:
    """What `enter` makes of it. Raises ProbeError, also where it takes too long."""
    try:
        async with asyncio.timeout(LET_IN_S):
            return await enter(there.url, there.token)
    except TimeoutError:
        raise CallFailed(f"{there.url} does not let the caller in within {LET_IN_S:.0f} s", "connect") from None


def first_of(refused: Mapping[str, ProbeError], text: str) -> CallFailed:
    """The failure of a call, by that of the first PoP that was tried: the directory's best choice."""
    pop, error = next(iter(refused.items()))
    step, why = (error.step, error.why) if isinstance(error, CallFailed) else ("connect", "")
    return CallFailed(text, step, why, pop)


def sentences(refused: Mapping[str, ProbeError]) -> str:
    """What became of each PoP that was tried."""
    return ", ".join(f"{pop}: {why}" for pop, why in refused.items())


def said(answer: httpx.Response) -> str:
    """The directory's own words."""
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return "without a word"

"""The boundary to an engine in a process and an interpreter of its own, for libraries that cannot live beside others.

An `EngineProcess` is one such process; `supervised.py` starts another when it ends. `ChildPool` (child_pool.py) is what
engines ask. What runs on the other end, and what goes over the pipes, is in child_main.py.
"""

import asyncio
import json
import logging
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from voicepipe.base.errors import EngineDead, EngineError, EngineMissing
from voicepipe.base.process_clock import LOOK_S, ProcessClock
from voicepipe.base.tasks import ended
from voicepipe.engines.hosting import child_main
from voicepipe.engines.hosting.child_main import MAGIC, SIZES, frame
from voicepipe.engines.hosting.failures import Failures

log = logging.getLogger(__name__)

MAX_BYTES = 1 << 28
"""No frame is larger: sizes beyond it were not written by child_main."""
LAST_LINES = 5
"""Lines of its standard error that the message about its end has."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program that a child process runs: a Python interpreter and an engine's file."""

    name: str
    """Name of the engine, and of its table in the configuration."""
    python: str
    """An interpreter that has the engine's library."""
    engine: Path
    """The file with the engine's half, which has `load` as child_main.py says."""
    settings: Mapping[str, Any]
    """Settings for `load`; they travel as JSON."""
    start_timeout_s: float = 120
    stall_s: float = 30
    """A process that is asked and sends nothing for so long hangs, and is killed."""


@dataclass(eq=False, slots=True)
class ChildRequest:
    """A request to a child process, with the parts of its answer as they come."""

    head: dict[str, Any]
    data: bytes
    asked: float = 0.0
    """Monotonic second from which on it waits."""
    parts: "asyncio.Queue[tuple[dict[str, Any], bytes] | EngineError | None]" = field(default_factory=asyncio.Queue)
    """None: it is complete. Not bounded: an answer is as long as its question makes it."""
    given_up: bool = False
    """Nobody waits for it any more. If the process then ends it without an error, that does not say that it works."""
    child: "EngineProcess | None" = None
    """The child that works on it."""
    number: int = 0


class EngineProcess:
    """A child process with an engine. It works on one request at a time. Implements `supervised.Core`.

    `changed` is called when it can take a request, and when it no longer can.
    """

    hung = False
    """As `supervised.Core`: a process that hangs is killed."""

    def __init__(self, program: Program, process: Process, changed: Callable[[], None]) -> None:
        assert process.stdin and process.stderr
        self.about: dict[str, Any] = {}
        """The engine's description of itself, once it is loaded."""
        self.errored = False
        self.why = ""
        """Why it works no more."""
        self._program = program
        self._process = process
        self._stdin = process.stdin
        self._changed = changed
        self._process_clock = ProcessClock()
        self._due = 0.0
        """Second of that clock by which something more must come, or it hangs."""
        self._request: ChildRequest | None = None
        """The request that it works on."""
        self._numbers = count(1)
        self._said: deque[str] = deque(maxlen=LAST_LINES)
        self._failures = Failures()
        self._tried: ChildRequest | None = None
        """The trial, while it is asked."""
        self._hearing = asyncio.create_task(self._hear(process.stderr))
        self._listening: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether it works on a request."""
        return self._request is not None

    async def load(self) -> None:
        """Returns when the engine is ready. Raises EngineMissing or EngineError; then, and when cancelled, the process
        is gone."""
        try:
            await self._load()
        except BaseException as error:
            await self._kill()
            if isinstance(error, _Over):
                raise EngineError(self._explained(error)) from None
            raise
        self._listening = asyncio.create_task(self._listen(), name=self._program.name)

    async def close(self) -> None:
        """Kill the process; what was asked fails. Safe to call twice."""
        if self.errored and self._listening:
            await asyncio.wait({self._listening})  # it is about to say why
        else:
            await ended(self._listening)
            await self._kill()
        self._fail(f"{self._program.name} is closed.")

    def send(self, request: ChildRequest) -> None:
        """Ask; it must not be busy."""
        request.child, request.number = self, next(self._numbers)
        self._request = request
        self._expect()
        self._write({"id": request.number, "ask": request.head}, request.data)

    def cancel(self, request: ChildRequest) -> None:
        """Nobody waits for it any more. The process is free again once it has noticed."""
        if request is self._request:
            request.given_up = True
            self._write({"cancel": request.number})

    async def _load(self) -> None:
        """Until the engine is ready. Raises EngineMissing, EngineError, _Over."""
        program = self._program
        self._write({"settings": dict(program.settings)})
        try:
            async with asyncio.timeout(program.start_timeout_s):
                head, _ = await _read(self._process, MAGIC)
        except TimeoutError:
            raise _Over(f"was not ready after {program.start_timeout_s:g} s") from None
        if "missing" in head:
            raise EngineMissing(f"{program.python} lacks what {program.name} needs: {head['missing']}.")
        if "failed" in head:
            raise EngineError(f"{program.name} could not be loaded: {head['failed']}")
        self.about = head.get("ready", {})

    async def _listen(self) -> None:
        """Take answers, until the process ends or hangs."""
        try:
            self._changed()  # not earlier: whoever is sent something now expects an answer
            while True:
                self._take(*await self._next())
                self._expect()
        except _Over as over:
            await self._kill()
            why = self._explained(over)
        except Exception as error:
            await self._kill()
            why = f"{self._program.name}'s process could not be kept: {error!r}."
        log.error("%s", why)
        self._fail(why)

    async def _kill(self) -> None:
        self.errored = True
        try:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(TimeoutError):
                # Not forever: a pipe stays open that nobody reads to its end, or that whoever left the group has.
                async with asyncio.timeout(1):
                    await asyncio.gather(self._process.wait(), self._hearing)
        finally:
            self._process._transport.close()  # type: ignore[attr-defined]

    def _explained(self, over: "_Over") -> str:
        said = f"; it said last: {' | '.join(self._said)}." if self._said else "."
        return f"{self._program.name}'s process {over}{said}"

    async def _next(self) -> tuple[dict[str, Any], bytes]:
        """The next frame. Raises _Over: there is none, or it is overdue."""
        reading = asyncio.ensure_future(_read(self._process))
        try:
            while not reading.done():
                await asyncio.wait({reading}, timeout=LOOK_S / 2)
                if self.busy and not reading.done() and self._process_clock() > self._due:
                    raise _Over(f"sent nothing for {self._program.stall_s:g} s while it was asked")
            return reading.result()
        finally:
            reading.cancel()

    def _expect(self) -> None:
        """Something is due from now on, if it works on a request."""
        self._due = self._process_clock() + self._program.stall_s

    def _take(self, head: dict[str, Any], data: bytes) -> None:
        request = self._request
        if request is None or head.get("id") != request.number:
            raise _Over("sent what is no answer")
        if "part" in head:
            request.parts.put_nowait((head["part"], data))
            return
        self._request = None
        failed = bool(head["end"])
        request.parts.put_nowait(EngineError(f"{self._program.name} failed: {head['end']}") if failed else None)
        self._judge(request, failed=failed)
        self._changed()

    def _judge(self, request: ChildRequest, *, failed: bool) -> None:
        """Raises _Over: it works no more."""
        if failed:
            self._failures.failed()
        elif not request.given_up:
            self._failures.worked()
        if request is self._tried:
            self._tried = None
            self._failures.tried()
        if self._failures.broken:
            raise _Over("failed again and again, and at a trial as well")
        if self._failures.suspect and self._tried is None:
            self._tried = ChildRequest(self.about["trial"], b"")
            self.send(self._tried)

    def _fail(self, why: str) -> None:
        """Whoever waits for an answer gets none."""
        self.why = self.why or why
        if self._request:
            self._request.parts.put_nowait(EngineDead(why))
            self._request = None
        self._changed()

    def _write(self, head: dict[str, Any], data: bytes = b"") -> None:
        self._stdin.write(frame(head, data))  # if it is dead we shall hear so from its standard output

    async def _hear(self, stderr: asyncio.StreamReader) -> None:
        """What libraries print: into the log, and the last of it into the message if the process ends."""
        rest = b""
        while chunk := await stderr.read(1 << 12):
            *lines, rest = re.split(rb"[\r\n]+", rest[-(1 << 12) :] + chunk)
            for line in lines:
                self._note(line)
        self._note(rest)

    def _note(self, line: bytes) -> None:
        if text := line.decode(errors="replace").strip():
            self._said.append(text)
            log.debug("%s: %s", self._program.name, text)


async def loaded(program: Program, changed: Callable[[], None]) -> EngineProcess:
    """A process with the engine, ready to be asked. Raises EngineMissing or EngineError: it could not be loaded."""
    try:
        process = await asyncio.create_subprocess_exec(
            program.python,
            "-Iu",  # without our PYTHONPATH, and without child_main's neighbours, which are named like libraries
            child_main.__file__,
            program.engine,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,  # Ctrl-C is for us; and killing the group takes the process's children along
        )
    except OSError as error:
        raise EngineMissing(
            f"{program.name}.python is {program.python!r}, which cannot be run ({error.strerror}): "
            f"set it to the interpreter of an environment that has the library of {program.name}."
        ) from None
    child = EngineProcess(program, process, changed)
    await child.load()
    return child


class _Over(Exception):
    """The child process is of no more use. The message completes "since it ..."."""


async def _read(process: Process, after: bytes = b"") -> tuple[dict[str, Any], bytes]:
    """The next frame, `after` these bytes. Raises _Over: there is none."""
    assert process.stdout
    try:
        if after:
            await process.stdout.readuntil(after)
        text_size, data_size = SIZES.unpack(await process.stdout.readexactly(SIZES.size))
        if text_size + data_size > MAX_BYTES:
            raise ValueError
        text = await process.stdout.readexactly(text_size)
        return json.loads(text), await process.stdout.readexactly(data_size)
    except asyncio.IncompleteReadError:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await process.wait()
        raise _Over(f"ended ({_status(process.returncode)})") from None
    except (ValueError, asyncio.LimitOverrunError):
        raise _Over("sent what is no answer") from None


def _status(code: int | None) -> str:
    if code is None:
        return "its standard output was closed"
    return f"status {code}" if code >= 0 else signal.Signals(-code).name

"""A PoP that is upgraded: it starts its program anew, hands its sockets over to the new process once that has loaded
its engines, and ends with its own last call."""

import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TypeVar

from voicepipe.base.environment import for_program, own_command
from voicepipe.base.errors import UpgradeFailed
from voicepipe.base.takeover import HandsSocketOver, HttpFront, PhoneFront, Takeover, TakeoverParts
from voicepipe.config import Config
from voicepipe.ingress.connection import REQUEST_S
from voicepipe.ingress.loopback_only import sip_host
from voicepipe.pop.predecessor import TAKEOVER, Inherited
from voicepipe.pop.takeover_channel import (
    EndCalls,
    EnginesLoaded,
    MainProcess,
    Message,
    PartState,
    ProcessStarted,
    SipDatagram,
    SocketsHandedOver,
    StartFailed,
    TakeoverChannel,
    TakeoverWithdrawn,
    TakesCalls,
)

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=Message)
ARRIVES_S = 60.0
"""Seconds in which a new process has to say that it runs: before it reads a file or loads an engine."""
GRACE_S = REQUEST_S
"""Seconds for which this process goes on taking calls of those who were connected already: so long they may take for
their request."""
SERVES_S = 30.0
"""Seconds in which it has to take calls, once it has the sockets. Callers wait meanwhile."""


class Successor:
    """Starts the process that replaces this one. Implements `SuccessorApi`. `parts`: what is handed over
    besides sockets; `config`: gives the configuration in use; `end_calls`: ends the calls that go on here, when the new
    process ends; `lock`: the descriptor of the records' lock, None: no records are kept."""

    def __init__(
        self, parts: TakeoverParts, config: Callable[[], Config], end_calls: Callable[[], None] = lambda: None,
        lock: int | None = None,
    ) -> None:  # fmt: skip
        self.taken_over = asyncio.Event()
        """Set once the new process takes all calls."""
        self._parts = parts
        self._config = config
        self._end_calls = end_calls
        self._lock = lock
        self._http: HttpFront | None = None
        self._phones: PhoneFront | None = None
        self.main: Callable[[int], None] | None = None
        """Tells the service manager which process it is to watch; None: this process cannot be replaced."""
        self._channel: TakeoverChannel | None = None
        self._is_busy = self._is_stopping = self._is_ended = False
        self._inbox = asyncio.Queue[Message | None]()

    def fronts(self, http: HttpFront, phones: PhoneFront | None) -> None:
        """As `SuccessorApi.fronts`."""
        self._http, self._phones = http, phones

    def withdraw(self) -> None:
        """This process is to end: nobody takes over from it any more, unless that has happened."""
        self._is_stopping = True
        if self._is_busy:
            self._inbox.put_nowait(StartFailed("this process was told to stop"))

    async def take_over(self) -> Takeover:
        """Start the new process and wait until it takes calls. Raises UpgradeFailed: it does not, and this process goes
        on as before."""
        if why := self._refusal():
            raise UpgradeFailed(why)
        self._is_busy, self._inbox = True, asyncio.Queue()
        try:
            arrived = await self._taken_over()
        except BaseException:
            if self._channel:
                self._channel.send(TakeoverWithdrawn())
                self._channel.close()
            self._channel = None
            raise
        finally:
            self._is_busy = False
        logger.warning("process %d (version %s) takes the calls now; this one ends with its last call",
                       arrived.pid, arrived.version)  # fmt: skip
        return Takeover(arrived.pid, arrived.version)

    def _refusal(self) -> str:
        """Why nobody can take over; empty: somebody can."""
        config = self._config()
        if self._is_busy:
            return "An upgrade is under way already: wait for its end."
        if self._channel or self._is_stopping:
            return "This process takes no calls any more: it ends with its last one."
        if config.bus.servers:
            return ("This PoP belongs to a fleet, whose other PoPs take its callers: have it drain (`voicepipe drain "
                    f"{config.pop.id}`), and start the new version then.")  # fmt: skip
        if self.main is None:
            return "Only a PoP that `voicepipe pop` has started can be upgraded so: end this one, and start it again."
        if os.getpid() == 1:
            return ("A container ends with its first process, so another one cannot take over: start a container of "
                    "the new version, and stop this one.")  # fmt: skip
        return ""

    async def _taken_over(self) -> ProcessStarted:
        assert self.main
        self._channel = await self._started(self._config())
        arrived = await self._next(ProcessStarted, ARRIVES_S, "it did not start")
        logger.info("process %d loads its engines, to take over", arrived.pid)
        await self._next(EnginesLoaded, None, "it ended before its engines were loaded")
        await self._hand_over(self._channel)
        self.main(arrived.pid)
        self._channel.send(MainProcess())
        return arrived

    async def _hand_over(self, channel: TakeoverChannel) -> None:
        assert self._http
        port, sockets = self._http.private_port(), [server.pause() for server in self._servers]
        try:
            channel.send(SocketsHandedOver(self._parts.given(), port), *sockets)
            self._parts.publish = lambda name, state: channel.send(PartState(name, state))
            await self._next(TakesCalls, SERVES_S, "it got the sockets, and took no calls")
        except BaseException:
            self._resume()
            raise
        for server in self._servers:
            server.retire()
        asyncio.get_running_loop().call_later(GRACE_S, self._over)

    @property
    def _servers(self) -> list[HandsSocketOver]:
        return [server for server in (self._http, self._phones) if server]

    def _over(self) -> None:
        """Nobody new can come here any more."""
        if self._http:
            self._http.close_idle()
        self.taken_over.set()

    def _resume(self) -> None:
        self._parts.publish = None
        for server in self._servers:
            server.resume()

    def _closed(self) -> None:
        """The new process has ended."""
        if self._parts.is_handed_over and not self._is_busy and not self._is_ended:
            logger.error("the process that had taken over is gone: this one reads its sockets again, for its own calls")
            self._resume()
        self._inbox.put_nowait(None)

    async def _started(self, config: Config) -> TakeoverChannel:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs, ExitStack() as stack:
            stack.enter_context(ours)
            fds = [theirs.fileno(), *([] if self._lock is None else [self._lock])]
            phones = sip_host(config.sip, config.http), config.sip.port
            inherited = Inherited(theirs.fileno(), self._lock, (config.http.host, config.http.port), phones)
            environment = for_program({TAKEOVER: json.dumps(inherited)}, without=("WATCHDOG_PID",))
            # A shell that ends at once: the new process belongs to the service manager, not to us, who end before it.
            program = ("/bin/sh", "-c", '"$@" &', "sh", *own_command())
            shell = await asyncio.create_subprocess_exec(*program, pass_fds=fds, env=environment)
            await shell.wait()
            stack.pop_all()
        return TakeoverChannel(ours, self._came, self._closed)

    def _came(self, message: Message, sockets: list[socket.socket]) -> None:
        match message:
            case SipDatagram(data, host, port):
                if self._phones:
                    self._phones.passed_on(data, (host, port))
            case EndCalls():
                self._is_ended = True
                self._end_calls()
            case _:
                self._inbox.put_nowait(message)

    async def _next(self, kind: type[M], within_s: float | None, otherwise: str) -> M:
        """The next message, of this kind. Raises UpgradeFailed."""
        message: Message | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                message = await self._inbox.get()
        if isinstance(message, kind):
            return message
        why = message.why if isinstance(message, StartFailed) else f"{otherwise}; its log says more"
        raise UpgradeFailed(f"The new process does not take over, and this one goes on: {why}")

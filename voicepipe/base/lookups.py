"""Addresses of hosts whose names others chose: looked up so that no lookup waits for another one's name server.

A lookup takes a thread, and nothing ends it: where the name server does not answer, it takes 5 to 20 s, whoever still
waits for it or not. uvloop's own lookups have two threads for the whole process, so one such name stalls all others.

- Each of a `Lookups` has a thread of its own. A name is looked up once at a time, for all that want it.
- There are so many threads, and no more. Where all are busy a further name waits for one, and only so long.
- What was found, and that nothing was found, holds for a while.
"""

import asyncio
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

Question = tuple[str, int, int, int, int]
"""The arguments of a lookup: the name; what `socket.getaddrinfo` calls family, type, proto and flags."""
Found = list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]]
"""The addresses, as `socket.getaddrinfo` returns them, each with port 0."""
Answer = Found | OSError

MOST_KNOWN = 1024
"""Answers that are remembered; the one that came longest ago is forgotten first."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of lookups. `threads`: lookups at a time. `line`: names that wait for a thread, each for `wait_s`. An
    address is used for `found_s`; for `missing_s` a name without one is not looked up again."""

    threads: int
    line: int
    wait_s: float
    found_s: float
    missing_s: float


class Lookups:
    """Looks up host names in threads, so that no lookup waits for another one's name server. Lives on the event loop.
    `name`: of its threads."""

    def __init__(self, name: str, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._limits = limits
        self._clock = clock
        self._known: OrderedDict[Question, tuple[Answer, float]] = OrderedDict()
        """Answers, with the second until which each holds."""
        self._asked: dict[Question, asyncio.Future[Answer]] = {}
        """Lookups in progress, or waiting."""
        self._line: dict[Question, asyncio.TimerHandle] = {}
        """Lookups that wait for a thread, in order; with the second at which each has waited long enough."""
        self._running = 0

    async def find(self, question: Question) -> Found:
        """The addresses of a host. Raises OSError: there is none, or too many names are looked up. A caller who is
        cancelled stops no other's lookup."""
        answer = await asyncio.shield(self.ask(question))
        if isinstance(answer, OSError):
            raise type(answer)(*answer.args)  # One of its own for each: a traceback is kept in it.
        return answer

    def ask(self, question: Question) -> "asyncio.Future[Answer]":
        """The future of a lookup, which all callers share: it is not to be cancelled. Done at once where the answer is
        known, or no lookup is possible."""
        asked = self._asked.get(question)
        if asked is not None:
            return asked
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        known, until = self._known.get(question, (None, 0.0))
        if known is not None and self._clock() < until:
            future.set_result(known)
        elif self._running < self._limits.threads:
            self._asked[question] = future
            self._begin(question)
        elif len(self._line) < self._limits.line:
            self._asked[question] = future
            self._line[question] = loop.call_later(self._limits.wait_s, self._waited, question)
        else:
            future.set_result(_too_many(question))
        return future

    def close(self) -> None:
        """Look up nothing more, and leave all callers without an answer. Lookups that hang go on by themselves."""
        for timer in self._line.values():
            timer.cancel()
        self._line.clear()
        self._asked.clear()

    def _begin(self, question: Question) -> None:
        # A daemon: a lookup that hangs must not keep the process from ending.
        ask = partial(self._look_up, asyncio.get_running_loop(), question)
        thread = threading.Thread(target=ask, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # The system has no thread for us.
            self._settle(question, _again(f"{question[0]} is not looked up: {error}"))
        else:
            self._running += 1

    def _look_up(self, loop: asyncio.AbstractEventLoop, question: Question) -> None:
        """Look up a name, in a thread."""
        host, family, kind, proto, flags = question
        answer: Answer
        try:
            answer = [*socket.getaddrinfo(host, None, family, kind, proto, flags)]
        except OSError as error:
            answer = error
        except Exception as error:  # UnicodeError: it is no name at all. Whatever it is, the thread ends and says so.
            answer = socket.gaierror(socket.EAI_NONAME, str(error))
        with suppress(RuntimeError):  # The loop is closed: the lookup hung up to now.
            loop.call_soon_threadsafe(self._answered, question, answer)

    def _answered(self, question: Question, answer: Answer) -> None:
        self._running -= 1
        missing = isinstance(answer, OSError)
        self._known[question] = answer, self._clock() + (self._limits.missing_s if missing else self._limits.found_s)
        self._known.move_to_end(question)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        self._settle(question, answer)
        while self._line and self._running < self._limits.threads:
            waited_longest = next(iter(self._line))
            self._line.pop(waited_longest).cancel()
            self._begin(waited_longest)

    def _waited(self, question: Question) -> None:
        del self._line[question]
        self._settle(question, _too_many(question))

    def _settle(self, question: Question, answer: Answer) -> None:
        future = self._asked.pop(question, None)
        if future is not None and not future.done():  # None: it is closed.
            future.set_result(answer)


def _too_many(question: Question) -> OSError:
    return _again(f"{question[0]} is not looked up: name servers do not answer for too many other names")


def _again(why: str) -> OSError:
    return socket.gaierror(socket.EAI_AGAIN, why)

"""A proposal of an edition, and the answers of the hosts."""

import asyncio
import secrets
from collections.abc import Callable

VERDICTS_S = 5.0
"""Seconds in which hosts have to answer whether they would take an edition; each reads all agents' files."""
SAYS_NOTHING = (
    f"says nothing within {VERDICTS_S:g} s: push again; if that does not help, look whether it may hear vp.fleet.> on "
    "the bus"
)


class ProposalRound:
    """Collects the answers of hosts to one proposal. `asked`: the names of the hosts whose answers count."""

    def __init__(self, asked: set[str]) -> None:
        self.id = secrets.token_hex(8)
        self._asked = frozenset(asked)
        self._waiting = set(asked)
        self._problems: dict[str, list[str]] = {}
        """Problems, with the hosts that report them."""
        self._all_answered = asyncio.Event()
        if not asked:
            self._all_answered.set()

    def said(self, host: str, problem: str) -> None:
        """A host has answered; empty: it would take the edition."""
        if host not in self._asked:
            return
        for line in problem.splitlines():
            self._problems.setdefault(line, []).append(host)
        self._waiting.discard(host)
        if not self._waiting:
            self._all_answered.set()

    async def over(self, heard: Callable[[], set[str]]) -> tuple[str, ...]:
        """Wait for all answers. Returns the hosts without an answer that have fallen silent meanwhile: they are not
        waited for. `heard`: the hosts that report at a moment. A missing answer of another one is a problem."""
        try:
            async with asyncio.timeout(VERDICTS_S):
                await self._all_answered.wait()
        except TimeoutError:
            there = heard()
            for host in self._waiting & there:
                self._problems.setdefault(SAYS_NOTHING, []).append(host)
            return tuple(sorted(self._waiting - there))
        return ()

    def lines(self) -> list[str]:
        """A line for each problem, with the hosts that have it."""
        return [f"{line} (so {', '.join(sorted(hosts))})" for line, hosts in self._problems.items()]

"""Tells the `hooks.on_turn` of agents of each turn, beside the call, which never waits for it."""

import logging
from collections import deque
from typing import Any

import msgspec

from voicepipe.call_settings import CallSettings
from voicepipe.observe.call_followers import CallFacts, CallFollower
from voicepipe.observe.last_turns import FullTurn
from voicepipe.pop.hooks import Hook, HookCaller, HookFailed

log = logging.getLogger(__name__)

TURN_MS = 5000
"""Milliseconds that a receiver has for one turn."""
MOST_WAITING = 8
"""Turns of one call that wait while its receiver has another; beyond that they are dropped."""


def turn_as_json(full: FullTurn) -> dict[str, Any]:
    """The turn as a hook reads it: the words as records have them."""
    turn = full.turn
    return {
        "id": turn.id, "number": full.number, "at": turn.at, "heard": full.heard, "said": full.answered,
        "status": full.status, "latency_ms": turn.latency_ms, "late": turn.late, "missed": turn.missed,
        "tools": msgspec.to_builtins(full.tools),
    }  # fmt: skip


class TurnHooks(CallFollower):
    """Tells the `hooks.on_turn` of agents of each turn of their calls, in order. What a receiver is too slow for is
    dropped and counted. `pop`: the PoP's id."""

    def __init__(self, hooks: HookCaller, pop: str) -> None:
        self._hooks, self._pop = hooks, pop
        self._calls: dict[str, _TurnTeller] = {}

    def follow(self, call_id: str, settings: CallSettings, tenant: str) -> None:
        """A call is answered with these settings: tell the hook of its agent, if that has one. Who takes the call over
        later changes nothing in that."""
        hooks, origin = settings.agent.hooks, settings.origin
        if not hooks.on_turn:
            return
        call = {"id": call_id, "caller": origin.caller, "called": origin.called, "headers": dict(origin.headers)}
        given = {"call": call, "pop": self._pop, "tenant": tenant}
        hook = Hook("on_turn", hooks.on_turn, TURN_MS, "turn", hooks.secret)
        self._calls[call_id] = _TurnTeller(self._hooks, hook, given, call_id, tenant)

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        if teller := self._calls.get(call.id):
            teller.tell({"turn": turn_as_json(full), "agent": full.turn.agent})

    def left(self, call: CallFacts) -> None:
        if teller := self._calls.pop(call.id, None):
            teller.no_more()


class _TurnTeller:
    """Tells one hook of the turns of one call, one after the other."""

    def __init__(self, hooks: HookCaller, hook: Hook, given: dict[str, Any], call_id: str, tenant: str) -> None:
        self._hooks, self._hook, self._given, self._call_id, self._tenant = hooks, hook, given, call_id, tenant
        self._waiting = deque[dict[str, Any]]()
        self._runs = self._ended = False
        self._turns = self._lost = 0

    def tell(self, turn: dict[str, Any]) -> None:
        self._turns += 1
        if len(self._waiting) >= MOST_WAITING:
            return self._lose(f"{MOST_WAITING} turns wait already: answer faster")
        self._waiting.append(turn)
        if not self._runs:
            self._runs = True
            self._hooks.begin(self._run(), f"on_turn of {self._call_id}")

    def no_more(self) -> None:
        """The call is over."""
        self._ended = True
        self._sum_up()

    async def _run(self) -> None:
        try:
            while self._waiting:
                try:
                    await self._hooks.ask(
                        self._hook, self._given | self._waiting.popleft(), self._call_id, self._tenant
                    )
                except HookFailed as error:
                    self._lose(str(error))
        finally:
            self._runs = False
        self._sum_up()

    def _lose(self, why: str) -> None:
        self._lost += 1
        if self._lost == 1:
            log.warning("%s: hooks.on_turn has not taken a turn: %s", self._call_id, why)

    def _sum_up(self) -> None:
        if self._ended and not self._runs and self._lost > 1:
            log.warning("%s: hooks.on_turn has not taken %d of %d turns", self._call_id, self._lost, self._turns)

"""Which of Telnyx's calls have to be hung up, and hanging them up: one that is not holds its caller in silence, and is
billed.

- *Those that end with another* (`TransferLegs`): a caller's, and that of the party to whom they were transferred. Every
  attempt has a state of its own, which the webhooks of its leg repeat: the end of one that was given up is not mistaken
  for the outcome of the next.
- *Those that an earlier run of this PoP has left in progress when it died* (`PopRun`). Every call bears the name of its
  PoP and of the run that has answered it (`client_state`), which its webhooks and the list of active calls repeat.
- *Those that could not be hung up* (`HangUps`): a command may fail because Telnyx, or the way there, does not work for
  a moment. No later event would have us try again.
"""

import asyncio
import binascii
import logging
import socket
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from voicepipe.base.errors import TransferFailed
from voicepipe.config import Config
from voicepipe.ingress.telephony.telnyx_api import ActiveCall, CommandFailed, TelnyxApi

logger = logging.getLogger(__name__)

MARK = "voicepipe"
FIRST_S, LONGEST_S = 1.0, 30.0
"""Seconds between the first attempt and the second; each pause is twice as long as the one before, up to the other."""
WITHIN_S = 600.0
"""Seconds for which attempts are made."""
MOST = 1000
"""Most calls for which attempts are repeated; for more only the first attempt is made."""


class HangUps:
    """Hangs up Telnyx's calls, and tries again where that fails. `close` it once nothing more is to be hung up."""

    def __init__(self, api: TelnyxApi) -> None:
        self._api = api
        self._again: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def hang_up(self, call_id: str) -> None:
        """Returns after the first attempt. If that fails, the log says so, and others follow."""
        try:
            await self._api.command(call_id, "hangup")
        except CommandFailed as error:
            again = not self._closed and len(self._again) < MOST
            then = "it is tried again" if again else "it is not tried again"
            logger.error("telnyx: %s is not hung up, and %s: %s", call_id, then, error)
            if again and call_id not in self._again:
                self._again[call_id] = task = asyncio.create_task(self._repeat(call_id))
                task.add_done_callback(lambda _: self._again.pop(call_id, None))

    def over(self, call_id: str) -> None:
        """Telnyx reports that this call has ended."""
        if task := self._again.pop(call_id, None):
            task.cancel()

    async def close(self) -> None:
        """Try no more. At its next start a PoP hangs up what is left (`PopRun`)."""
        self._closed = True
        if left := set(self._again.values()):
            logger.error("telnyx: not hung up when the server ended: %s", ", ".join(self._again))
            for task in left:
                task.cancel()
            await asyncio.wait(left)

    async def _repeat(self, call_id: str) -> None:
        loop = asyncio.get_running_loop()
        until, pause_s, why = loop.time() + WITHIN_S, FIRST_S, ""
        while loop.time() + pause_s <= until:
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_S, 2 * pause_s)
            try:
                await self._api.command(call_id, "hangup")
            except CommandFailed as error:
                why = str(error)
            else:
                logger.info("telnyx: %s is hung up now", call_id)
                return
        logger.error("telnyx: %s is not hung up after %g s, and not tried again: %s", call_id, WITHIN_S, why)


class PopRun:
    """This run of this PoP, which marks the calls that it answers at Telnyx. `boot` differs at each start."""

    def __init__(self, config: Config, boot: str) -> None:
        # Several PoPs may share an application, an id that nobody has changed, or a machine, but no machine's port.
        self._pop = f"{config.pop.id}/{socket.gethostname()}:{config.http.port or boot}"
        self._boot = boot
        self.mark = f"{MARK} {self._pop} {boot}"
        """The beginning of the `client_state` of every call of this run."""
        self.state = b64encode(self.mark.encode()).decode()
        """The `client_state` of the calls that it answers."""

    def is_dead(self, state: str | None) -> bool:
        """Whether a call with this `client_state` was answered or made by an earlier run of this same PoP."""
        said = _words(state)
        return said[:2] == [MARK, self._pop] and len(said) > 2 and said[2] != self._boot

    def left_behind(self, active: Sequence[ActiveCall]) -> list[str]:
        """Those of an application's active calls that have to be ended. A caller who was transferred goes on talking:
        their session has another leg."""
        legs = Counter(call.call_session_id for call in active)
        return [
            call.call_control_id
            for call in active
            if self.is_dead(call.client_state) and legs[call.call_session_id] == 1
        ]


def pop_of(state: str | None) -> str:
    """The PoP that has answered or made a call with this `client_state`; empty: it names none."""
    said = _words(state)
    return said[1].partition("/")[0] if said[0] == MARK and len(said) > 2 else ""


def _words(state: str | None) -> list[str]:
    try:
        return b64decode(state or "", validate=True).decode().split(" ")
    except (ValueError, binascii.Error):
        return [""]


@dataclass(slots=True)
class TransferLeg:
    """One attempt to transfer `call_id` to another party. `taken`: done once the party has answered, or never will."""

    call_id: str
    state: str
    taken: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    bridged: bool = False
    orphaned: bool = False
    """The caller's stream has ended."""


class TransferLegs:
    """Attempts to transfer calls that may still be answered, or were and are not over. `mark`: the beginning of their
    states."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._legs: dict[str, TransferLeg] = {}
        self._attempts = 0

    def begin(self, call_id: str) -> TransferLeg:
        """Begin an attempt."""
        self._attempts += 1
        leg = TransferLeg(call_id, b64encode(f"{self._mark} {self._attempts} {call_id}".encode()).decode())
        self._legs[leg.state] = leg
        return leg

    def forget(self, leg: TransferLeg) -> None:
        """Forget an attempt that was not even dialled."""
        self._legs.pop(leg.state, None)

    def bridged(self, call_id: str, state: str) -> None:
        """The party has answered, by a report for either side of the call. Also for an attempt that was given up
        already."""
        leg = self._legs.get(state) or self._last(call_id)
        if leg:
            leg.bridged = True
            if not leg.taken.done():
                leg.taken.set_result(None)

    def hung_up(self, call_id: str, state: str, cause: str) -> str:
        """A caller or a party has hung up. Returns the caller who must be hung up for it; empty: none."""
        if leg := self._legs.pop(state, None):
            if leg.bridged or leg.orphaned:
                return leg.call_id
            if not leg.taken.done():
                leg.taken.set_exception(TransferFailed(f"nobody took the call ({cause or 'no reason given'})"))
            return ""
        self._legs = {state: leg for state, leg in self._legs.items() if leg.call_id != call_id}
        return ""

    def keep(self, call_id: str, *, transferred: bool) -> bool:
        """The caller's stream has ended. Returns whether the call goes on without us: the party has answered, or, if
        the stream ended as `transferred`, may yet."""
        leg = self._last(call_id)
        if leg is None or not (leg.bridged or transferred):
            return False
        leg.orphaned = True
        return True

    def _last(self, call_id: str) -> TransferLeg | None:
        return next((leg for leg in reversed(self._legs.values()) if leg.call_id == call_id), None)

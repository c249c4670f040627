"""A PoP as a member of a fleet: its reports to directories, the calls that they send, and other PoPs for callers whom
it refuses."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

import msgspec

from voicepipe.base.errors import SessionMissing
from voicepipe.call_api import Alternate, Grant
from voicepipe.config import Config
from voicepipe.config.rereads import Use
from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus, BusMessage, decoding
from voicepipe.directory.fleet_view import FleetView
from voicepipe.directory.key_sessions import KeySessions
from voicepipe.directory.report import Condition, PopReport
from voicepipe.directory.reporter import Reporter, TripReporter
from voicepipe.directory.router import alternates
from voicepipe.directory.subjects import CallSession, Command
from voicepipe.directory.tokens import AGAIN, TokenVerifier, audience, public_keys

logger = logging.getLogger(__name__)
ANSWERED_S = 0.1
"""PoPs that report again within so many seconds of one another came back together: one report answers all."""


class Membership:
    """A PoP as a member of a fleet: it reports to directories, takes the calls that they send, and knows other PoPs for
    callers that it refuses. Implements `call_api.Tokens`."""

    def __init__(
        self,
        bus: Bus,
        config: Config,
        condition: Callable[[], Condition],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.dismissed = asyncio.Event()
        """Set when an operator orders the PoP to drain and to exit."""
        self.round_trips = TripReporter(bus, config.pop.id)
        self._bus = bus
        self._pop = config.pop.id
        self._condition = condition
        self._clock = clock
        self.reporter = Reporter(bus, self._pop, condition)
        audience_here = audience(self._pop, self.reporter.epoch)
        self._verifier = TokenVerifier(audience_here, public_keys(config.fleet.keys), time.time)
        self._key_sessions = KeySessions()
        self._view = FleetView()
        self._answered = -ANSWERED_S
        """When a PoP last reported again, and got our report at once."""

    def reread(self, config: Config) -> Use:
        """The keys of directories, as `Rereads` has it."""
        return partial(self._verifier.become, public_keys(config.fleet.keys))

    async def listen(self) -> None:
        """Receive what directories and other PoPs publish, until cancelled."""
        mine = subjects.of_pop(subjects.SESSIONS, self._pop), subjects.of_pop(subjects.COMMANDS, self._pop)
        async with self._bus.listen(*mine, subjects.REPORTS, subjects.GOODBYES) as messages:
            async for message in messages:
                with decoding(message):
                    await self._take(message)

    def alternates(self) -> tuple[Alternate, ...]:
        """PoPs to which a caller may go who is refused here."""
        seen = [seen for seen in self._view.alive(self._clock()) if seen.pop != self._pop]
        return tuple(Alternate(seen.pop, seen.condition.url) for seen in alternates(seen, self._condition()))

    def read(self, token: str, spent: bool = False) -> Grant:
        return self._verifier.read(token, spent)

    def use(self, grant: Grant) -> None:
        self._verifier.use(grant)
        if grant.begins and grant.kind not in ("twilio", "telnyx"):  # Those begin with their streams: `came`.
            self.reporter.began(grant.id)

    def came(self, placement_id: str) -> None:
        self.reporter.began(placement_id)

    def owner(self, placement_id: str) -> str:
        return self._key_sessions.owner(placement_id)

    async def session(self, grant: Grant) -> bytes:
        session = await self._key_sessions.get(grant.tenant, grant.id)
        if session is None:
            raise SessionMissing(f"The session of this ek_ key has not come from the directory: {AGAIN}.")
        return session

    async def _take(self, message: BusMessage) -> None:
        if message.subject == subjects.of_pop(subjects.SESSIONS, self._pop):
            call_session = msgspec.json.decode(message.data, type=CallSession)
            await self._key_sessions.put(call_session.tenant, call_session.call, bytes(call_session.session))
        elif message.subject == subjects.of_pop(subjects.COMMANDS, self._pop):
            msgspec.json.decode(message.data, type=Command)
            logger.warning("an operator drains this PoP: it takes no new calls, and ends with the last one")
            self.dismissed.set()
        elif pop := subjects.pop_of(message.subject):
            if message.subject == subjects.of_pop(subjects.REPORTS, pop):
                self._heard(pop, msgspec.json.decode(message.data, type=PopReport))
            else:
                self._view.left(pop, msgspec.json.decode(message.data, type=subjects.PopGoodbye).epoch, self._clock())

    def _heard(self, pop: str, report: PopReport) -> None:
        """A PoP that was silent may have been cut off, together with directories, which did not get our reports either:
        report to them as soon as they can be reached again."""
        now = self._clock()
        silent = not self._view.is_alive(pop, now)
        if self._view.heard(pop, report, now) and silent and pop != self._pop and now >= self._answered + ANSWERED_S:
            self._answered = now
            self.reporter.report_now()

"""A directory: it collects the reports of PoPs, and chooses the PoPs that a caller may call, with a token for each.

It asks nobody while a caller waits: the view is in memory, and a choice takes microseconds. Several directories need no
leader. Each keeps a view of its own and tells the others which calls it has sent where.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Literal, Protocol

import msgspec

from voicepipe.base.errors import NoPop, Reason, WhyNone
from voicepipe.base.places import Place
from voicepipe.call_api import Grant
from voicepipe.config.directory_config import CanaryConfig
from voicepipe.config.phone_config import PhoneKind
from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus, BusMessage, decoding
from voicepipe.directory.call_claims import CallClaims
from voicepipe.directory.call_shares import CallShares
from voicepipe.directory.fleet_view import SETTLES_S, FleetView, SeenPop
from voicepipe.directory.known_pops import KnownPops
from voicepipe.directory.nearness import TripSource
from voicepipe.directory.report import PopReport
from voicepipe.directory.round_trips import LearnedTrip, RoundTrips
from voicepipe.directory.router import TAKES, Candidate, ChoiceReason, RankedPops, WantedCall, choose
from voicepipe.directory.subjects import Assignment, CallSession, Command, PopGoodbye, RoundTrip
from voicepipe.directory.tokens import Signer

REMEMBERED = 200
"""Calls placed here that are remembered."""
ORDERS = 12
AGAIN_S = 0.25
"""Seconds after which an order to drain is repeated, and how often, until its PoP reports that it drains."""


@dataclass(frozen=True, slots=True)
class PopToken:
    """A token for one PoP, with the address where it is valid: it admits a caller or a request."""

    pop: str
    url: str
    token: str


@dataclass(frozen=True, slots=True)
class PlacementOffer(PopToken):
    """A PoP that the caller may call."""

    turn_ms: float
    """Turn latency that the caller will hear, from their last word to the answer, as far as can be predicted."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The PoPs to which a call may go, the best first."""

    placement_id: str
    """Id of this placing of the call ("call_..."), which its tokens carry as `Grant.id`, and which clients read as
    `call_id`. The call gets an id of its own at the PoP that it reaches ("rtc_POP....": `pop._AdmittedCall.open`)."""
    offers: tuple[PlacementOffer, ...]
    degraded: bool
    """Even the first will probably answer late."""


class PlacedCall(msgspec.Struct, frozen=True):
    """A call that was placed here, as operators see it."""

    at: float
    """Unix seconds."""
    call: str
    """As `Placement.placement_id`."""
    tenant: str
    kind: str
    place: Place | None
    """The place of the caller on the globe."""
    pop: str
    why: ChoiceReason
    near_ms: float
    """Round trip and playout, in ms."""
    by: TripSource
    """How the round trip is known."""
    turn_ms: float
    others: tuple[str, ...]
    """The other candidates."""


WhyBounced = Literal["refused", "no_answer", "told"]
"""Why a call came back from a PoP: the PoP refused it; it did not answer; its caller came back and named it among those
that they have tried."""


class PlacementFollower(Protocol):
    """Is notified of each call that is asked for. Implemented by `FleetMetrics`."""

    def placed(self, call: PlacedCall) -> None:
        """The call was sent to a PoP."""

    def not_placed(self, why: WhyNone) -> None:
        """There is no PoP for the call."""

    def bounced(self, pop: str, why: WhyBounced) -> None:
        """A call was sent to this PoP and was not taken."""

    def refused(self, kind: PhoneKind, reason: Reason) -> None:
        """A phone call was refused before a PoP was chosen."""


class Directory:
    """A directory: it collects the reports of PoPs, and chooses the PoPs for a call, with a token for each. `clock`
    gives monotonic seconds. `learns`: round trips are learned from calls."""

    def __init__(
        self,
        bus: Bus,
        signer: Signer,
        lots: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        canaries: Sequence[CanaryConfig] = (),
        *,
        learns: bool = True,
        known: KnownPops | None = None,
    ) -> None:
        self.known = known
        """The PoPs that keep records, remembered for long. None: they are remembered for a day, and until this
        directory ends."""
        self.placed: deque[PlacedCall] = deque(maxlen=REMEMBERED)
        """The newest last."""
        self.followers: list[PlacementFollower] = []
        self.call_claims = CallClaims(bus)
        self._bus = bus
        self._signer = signer
        self._lots = lots or Random()
        self.shares = CallShares(canaries, self._lots)
        self._clock = clock
        self._view = FleetView()
        self._deaf_at = -inf
        """When the bus was last seen to be lost."""
        self._round_trips = RoundTrips()
        self._learns = learns

    async def run(self) -> None:
        """Receive messages of PoPs and other directories, until cancelled."""
        learned = (subjects.ROUND_TRIPS,) if self._learns else ()
        listening = self._bus.listen(subjects.REPORTS, subjects.GOODBYES, subjects.ASSIGNMENTS, *learned)
        async with listening as messages:
            async for message in messages:
                self.take(message)

    def take(self, message: BusMessage) -> None:
        """Process one message of the bus. One that cannot be read is logged and has no effect."""
        pop = subjects.pop_of(message.subject)
        if pop is None:
            return
        with decoding(message):
            if message.subject == subjects.of_pop(subjects.REPORTS, pop):
                report = msgspec.json.decode(message.data, type=PopReport)
                if self._view.heard(pop, report, self._clock()) and self.known:
                    self.known.heard(pop, report.condition.keep_days)
            elif message.subject == subjects.of_pop(subjects.GOODBYES, pop):
                self._view.left(pop, msgspec.json.decode(message.data, type=PopGoodbye).epoch, self._clock())
            elif message.subject == subjects.of_pop(subjects.ROUND_TRIPS, pop):
                trip = msgspec.json.decode(message.data, type=RoundTrip)
                if self._view.is_alive(pop, self._clock()):
                    self._round_trips.heard(trip.network, pop, trip.ms, self._clock(), again=trip.again)
            else:
                self._view.assigned(pop, msgspec.json.decode(message.data, type=Assignment).call, self._clock())

    async def place(self, wanted: WantedCall, grant: Grant, session: bytes = b"") -> Placement:
        """The PoPs to which a call may go. `grant` has the rights of its tokens, and the network from which the call
        comes; the placement's id is put into it. `session`: as in `CallSession`, for the PoPs by the bus. Raises
        NoPop."""
        for pop in wanted.tried:
            self.bounced(pop, "told")
        try:
            wanted = self._with_learned(wanted, grant.network)
            choice = self._chosen(wanted)
        except NoPop as error:
            for follower in self.followers:
                follower.not_placed(error.why)
            raise
        placement_id = f"call_{secrets.token_hex(8)}"
        first = choice.candidates[0].seen.pop
        self._view.assigned(first, placement_id, self._clock())
        self._note_try(choice.candidates[0], wanted, grant.network)
        assignment = msgspec.json.encode(Assignment(placement_id))
        await self._bus.publish(subjects.of_pop(subjects.ASSIGNMENTS, first), assignment)
        if session:
            call_session = msgspec.json.encode(CallSession(grant.tenant, placement_id, msgspec.Raw(session)))
            for candidate in choice.candidates:
                await self._bus.publish(subjects.of_pop(subjects.SESSIONS, candidate.seen.pop), call_session)
        granted = msgspec.structs.replace(grant, id=placement_id, briefed=bool(session))
        offers = tuple(
            PlacementOffer(
                candidate.seen.pop,
                candidate.seen.condition.call_url(wanted.kind),
                self._signed(granted, candidate.seen),
                round(candidate.turn_ms, 1),
            )
            for candidate in choice.candidates
        )
        self.placed.append(placed := _placed(placement_id, choice, wanted, grant.tenant))
        for follower in self.followers:
            follower.placed(placed)
        return Placement(placement_id, offers, choice.degraded)

    def _chosen(self, wanted: WantedCall) -> RankedPops:
        pops = self.pops()
        limits = self.shares.limits(pops)
        choice = choose(pops, wanted, self._lots, limits)
        self.shares.settle(choice.competed, choice.spent, limits)
        return choice

    def _with_learned(self, wanted: WantedCall, network: str) -> WantedCall:
        now = self._clock()
        learned, tries = self._round_trips.of(network, now), self._round_trips.may_try(network, now)
        return replace(wanted, learned_ms=learned.ms, unsure=learned.unsure, tries=tries)

    def _note_try(self, first: Candidate, wanted: WantedCall, network: str) -> None:
        """Record a call whose PoP was chosen by a guess. A PoP whose learned round trip is in doubt does not count: it
        is measured once more."""
        if first.by == "guess" and wanted.tries and first.seen.pop not in wanted.learned_ms:
            self._round_trips.tries(network, first.seen.pop, self._clock())

    def learned(self, networks: int) -> list[LearnedTrip]:
        """Learned round trips of so many networks at most, the ones with the latest calls first."""
        return self._round_trips.newest(self._clock(), networks)

    def bounced(self, pop: str, why: WhyBounced) -> None:
        """A call that was sent to this PoP came back. A caller who may have made up its name has no effect."""
        if self.knows(pop):
            for follower in self.followers:
                follower.bounced(pop, why)

    def refused(self, kind: PhoneKind, reason: Reason) -> None:
        """A phone call was refused before a PoP was chosen."""
        for follower in self.followers:
            follower.refused(kind, reason)

    def request_token(self, grant: Grant, pop: str, *, lost: bool = False) -> PopToken:
        """A token for one request to this PoP, with the base of its URL. `lost`: also if it fell silent within a day;
        it may still answer. Raises NoPop: the PoP does not report."""
        seen = next((seen for seen in (self.heard() if lost else self.pops()) if seen.pop == pop), None)
        if seen is None:
            raise NoPop(f"The PoP {pop!r} does not answer at present; try again later.")
        granted = msgspec.structs.replace(grant, id=f"ask_{secrets.token_hex(8)}", begins=False)
        return PopToken(seen.pop, seen.condition.url, self._signed(granted, seen))

    async def drain(self, pop: str) -> None:
        """Order this PoP to take no new calls, and to exit after its last one. Returns once it reports that it does, or
        has left. Raises NoPop: it does not report, or does not confirm in time."""
        if not self._bus.is_connected():
            raise NoPop("This directory has lost the bus, so no PoP hears its orders: ask another one, or again soon.")
        if not any(seen.pop == pop and not seen.silent for seen in self.pops()):
            raise NoPop(f"The PoP {pop!r} does not answer at present, so it gets no calls, and hears no order.")
        for _ in range(ORDERS):
            await self._bus.publish(subjects.of_pop(subjects.COMMANDS, pop), msgspec.json.encode(Command("drain")))
            await asyncio.sleep(AGAIN_S)
            if all(seen.condition.status == "draining" for seen in self.pops() if seen.pop == pop):
                return
        raise NoPop(
            f"The PoP {pop!r} was told to drain, but has not reported within {ORDERS * AGAIN_S:g} s that it does: give "
            "the order again, or end its process on its own host by SIGTERM."
        )

    def pops(self) -> list[SeenPop]:
        """PoPs that take part in choices."""
        return self._view.alive(self._clock(), deaf=self._is_deaf())

    def _is_deaf(self) -> bool:
        """Whether the bus is lost, or has just been found again and no report has come yet."""
        now = self._clock()
        if not self._bus.is_connected():
            self._deaf_at = now
            return True
        return now - self._deaf_at < SETTLES_S and not self._view.heard_since(self._deaf_at)

    def heard(self) -> list[SeenPop]:
        """PoPs that reported lately and have not said goodbye; silent ones for a day."""
        return self._view.heard_of(self._clock())

    def keepers(self) -> set[str]:
        """PoPs that may keep records of calls: all that were there within a day, also those that have said goodbye,
        since they may come again; and those that are `known`."""
        known = self.known.names() if self.known else set()
        return known | {seen.pop for seen in self.heard()} | self._view.gone(self._clock())

    def forget(self, pop: str) -> bool:
        """A PoP was taken away for good, with what it kept. Returns whether it was known. Raises NoPop: it reports."""
        if any(seen.pop == pop and not seen.silent for seen in self.pops()):
            raise NoPop(f"The PoP {pop!r} reports, so it is there: drain it, and forget it once it has ended.")
        known = self._view.forget(pop)
        return bool(self.known and self.known.forget(pop)) or known

    def knows(self, pop: str) -> bool:
        """Whether the PoP takes part in choices, or reported within the last minute, though it may be silent now."""
        return self._view.knows(pop, self._clock()) or any(seen.pop == pop for seen in self.pops())

    def takes_calls(self, kind: str) -> bool:
        """Whether a PoP takes such calls at present."""
        return any(seen.condition.status in TAKES and kind in seen.condition.kinds for seen in self.pops())

    @property
    def is_cut_off(self) -> bool:
        """Whether its view is old because the directory itself receives nothing."""
        return not self._bus.is_connected() or self._view.cut_off(self._clock())

    def _signed(self, grant: Grant, seen: SeenPop) -> str:
        return self._signer.sign(grant, seen.pop, seen.report.epoch, seen.report.clock_s + seen.age_s)


def _placed(placement_id: str, choice: RankedPops, wanted: WantedCall, tenant: str) -> PlacedCall:
    first, *others = choice.candidates
    return PlacedCall(
        at=time.time(),
        call=placement_id,
        tenant=tenant,
        kind=wanted.kind,
        place=wanted.place,
        pop=first.seen.pop,
        why=choice.why,
        near_ms=round(first.near_ms, 1),
        by=first.by,
        turn_ms=round(first.turn_ms, 1),
        others=tuple(other.seen.pop for other in others),
    )

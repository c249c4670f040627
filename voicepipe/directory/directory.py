"""A directory: it hears what PoPs report, and says to a caller where to call, with a token for each place.

It asks nobody while a caller waits: the view is in memory, and a choice takes microseconds. Several directories need no
leader. Each keeps a view of its own and tells the others which calls it has sent where.
"""

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import msgspec

from voicepipe.call_api import Grant
from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus, Message
from voicepipe.directory.report import decoded as decoded_report
from voicepipe.directory.router import Candidate, Wanted, choose
from voicepipe.directory.subjects import Assignment, Goodbye
from voicepipe.directory.tokens import Signer
from voicepipe.directory.view import Seen, View

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offer:
    """One place where the caller may call."""

    pop: str
    url: str
    token: str
    turn_ms: float
    """What they will hear of an answer so long after their last word, as far as can be told."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a call may go: the best first."""

    call: str
    offers: tuple[Offer, ...]
    degraded: bool
    """Even the first will probably answer late."""


class Directory:
    """`clock` gives monotonic seconds."""

    def __init__(
        self,
        bus: Bus,
        signer: Signer,
        lots: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus = bus
        self._signer = signer
        self._lots = lots or Random()
        self._clock = clock
        self._view = View()

    async def run(self) -> None:
        """Hear what PoPs and other directories say, until cancelled."""
        listening = self._bus.listen(subjects.REPORTS, subjects.GOODBYES, subjects.ASSIGNMENTS)
        async with listening as messages:
            async for message in messages:
                self.take(message)

    def take(self, message: Message) -> None:
        """One message of the bus. What cannot be read is logged and changes nothing."""
        pop = subjects.pop_of(message.subject)
        if pop is None:
            return
        try:
            if message.subject == subjects.report_of(pop):
                self._view.heard(pop, decoded_report(message.data), self._clock())
            elif message.subject == subjects.goodbye_of(pop):
                self._view.left(pop, msgspec.json.decode(message.data, type=Goodbye).epoch)
            else:
                self._view.assigned(pop, msgspec.json.decode(message.data, type=Assignment).call, self._clock())
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            logger.warning("%s: a message cannot be read, is it of another version? %s", message.subject, error)

    async def place(self, wanted: Wanted, grant: Grant) -> Placement:
        """Where this call may go. `grant` says what its tokens allow; the call's id is put into it. Raises NoPop."""
        choice = choose(self.pops(), wanted, self._lots)
        call = f"call_{secrets.token_hex(8)}"
        first = choice.candidates[0].seen.pop
        self._view.assigned(first, call, self._clock())
        await self._bus.publish(subjects.assignment_to(first), msgspec.json.encode(Assignment(call)))
        granted = msgspec.structs.replace(grant, id=call)
        offers = tuple(self._offer(candidate, wanted.kind, granted) for candidate in choice.candidates)
        return Placement(call, offers, choice.degraded)

    def pops(self) -> list[Seen]:
        """Those that take part in choices."""
        return self._view.alive(self._clock())

    @property
    def is_cut_off(self) -> bool:
        """Whether what it knows is old because it hears nobody."""
        return not self._bus.is_connected() or self._view.cut_off(self._clock())

    def _offer(self, candidate: Candidate, kind: str, grant: Grant) -> Offer:
        seen = candidate.seen
        token = self._signer.sign(grant, seen.pop, seen.report.epoch, seen.report.clock_s + seen.age_s)
        return Offer(seen.pop, seen.condition.urls[kind], token, round(candidate.turn_ms, 1))

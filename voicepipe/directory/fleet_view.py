"""A directory's view of the PoPs. Pure: monotonic seconds of the directory are passed in.

A PoP is alive for `LEASE_S` after its last report was sent. Leases count on the directory's own monotonic clock, so
clocks that are set wrong end none. A report may have lain about, in the buffers of a process that was stopped (SIGSTOP)
or on a network that was cut. By how much it came later than others of its run, it was sent earlier.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf

from voicepipe.directory.report import Condition, Epoch, PopReport

LEASE_S = 5.0
"""Seconds after its last report was sent for which a PoP counts as alive; then it is silent, and gets no calls, unless
the directory itself may be cut off. PoPs report once a second (`reporter.py`)."""
KNOWN_S = 60.0
"""Seconds after its last report for which a PoP counts when a directory decides whether it is cut off."""
SETTLES_S = 3.0
"""Seconds for which, once reports come again after `KNOWN_S` without any, those PoPs also count that lived before and
have not reported yet. PoPs report once a second, and NATS's servers find each other anew within 2.3 s."""
FORGOTTEN_S = 86_400.0
"""Seconds for which a silent PoP is still listed for operators, and one that is gone for those who ask for records."""
AT_ONCE_S = 3.0
"""PoPs that fall silent within so many seconds of one another fell silent together."""
FEWEST = 3
"""Fewest PoPs with which it can be decided whether they or the directory are cut off."""
DRIFT = 0.1
"""Part of the time that passes by which a lasting delay of a PoP's reports is forgiven: a virtual machine that was
paused, and whose clock stood still, is trusted again after a minute."""
PENDING_S = 5.0
"""Seconds after which an assigned call that has not begun is taken to have gone elsewhere, or nowhere."""


@dataclass(slots=True)
class _KnownRun:
    report: PopReport
    sent_at: float
    """When its last report was sent, as far as can be known; on the directory's clock."""
    least_offset: float
    """The least offset between the directory's clock and the PoP's `uptime_s`, from the quickest report."""
    heard_at: float
    pending: dict[str, float] = field(default_factory=dict)
    """When calls were assigned to it whose beginning it has not reported, by the ids of their placements."""


@dataclass(frozen=True, slots=True)
class SeenPop:
    """A PoP as it is used in choices."""

    pop: str
    report: PopReport
    age_s: float
    """Seconds since its report was sent."""
    pending: int
    """Calls that were assigned to it since."""
    silent: bool = False
    """Its lease is over: it is included because the directory may be cut off."""

    @property
    def condition(self) -> Condition:
        """Its condition when it reported."""
        return self.report.condition


class FleetView:
    """A directory's view of all PoPs, by their reports. Only `heard`, `left`, `forget` and `assigned` change it.
    Monotonic seconds of the directory are passed in."""

    def __init__(self) -> None:
        self._known: dict[str, _KnownRun] = {}
        self._heard_at = -inf
        """When the last report of anybody came, ..."""
        self._silence = (-inf, -inf)
        """... and from when until when none did, the last time that this took longer than `KNOWN_S`."""
        self._gone: dict[str, float] = {}
        """PoPs that said goodbye and have not come again, and when."""

    def heard(self, pop: str, report: PopReport, now: float) -> bool:
        """A report has come. Returns whether it counts: one of an earlier run does not, nor one that a later report has
        overtaken."""
        if self._known and now - self._heard_at > KNOWN_S:
            self._silence = self._heard_at, now
        self._heard_at = now
        known = self._known.get(pop)
        if known and known.report.epoch == report.epoch:
            if report.seq <= known.report.seq:
                return False
            offset = now - report.uptime_s
            known.least_offset = min(offset, known.least_offset + DRIFT * (now - known.heard_at))
            known.sent_at = max(known.sent_at, now - (offset - known.least_offset))
            known.report, known.heard_at = report, now
        elif known and report.epoch < known.report.epoch and _alive(known, now):
            return False  # A run that was stopped, has been replaced, and goes on: a ghost.
        else:
            known = self._known[pop] = _KnownRun(report, now, now - report.uptime_s, now)
            self._gone.pop(pop, None)
        for placement_id in report.begun:
            known.pending.pop(placement_id, None)
        return True

    def left(self, pop: str, epoch: Epoch, now: float) -> None:
        """This run of the PoP says goodbye."""
        known = self._known.get(pop)
        if known and known.report.epoch == epoch:
            del self._known[pop]
            self._gone[pop] = now

    def forget(self, pop: str) -> bool:
        """The PoP was taken away for good. Returns whether it was known."""
        known, gone = self._known.pop(pop, None), self._gone.pop(pop, None)
        return known is not None or gone is not None

    def assigned(self, pop: str, placement_id: str, now: float) -> None:
        """A call was assigned to the PoP, by this directory or another."""
        if known := self._known.get(pop):
            known.pending.pop(placement_id, None)
            known.pending[placement_id] = now

    def is_alive(self, pop: str, now: float) -> bool:
        """Whether the PoP's lease holds."""
        known = self._known.get(pop)
        return known is not None and _alive(known, now)

    def alive(self, now: float, deaf: bool = False) -> list[SeenPop]:
        """The PoPs whose leases hold, in the order of their names. A directory that is cut off goes on with its last
        view, for `KNOWN_S`. So does one that is `deaf`, which knows that it has lost the bus: for as long as that
        lasts, with the PoPs that lived when the last report came."""
        lost, found = self._silence
        if now - found < SETTLES_S or (deaf and now - self._heard_at > KNOWN_S):
            since = lost if now - found < SETTLES_S else self._heard_at
            return [_seen(pop, known, now) for pop, known in sorted(self._known.items())
                    if known.sent_at > since - LEASE_S and now - known.sent_at < FORGOTTEN_S]  # fmt: skip
        kept = deaf or self.cut_off(now)
        return [_seen(pop, known, now) for pop, known in sorted(self._recent(now)) if kept or _alive(known, now)]

    def heard_since(self, then: float) -> bool:
        """Whether any report has come since."""
        return self._heard_at > then

    def knows(self, pop: str, now: float) -> bool:
        """Whether the PoP reported within `KNOWN_S`."""
        return any(name == pop for name, _ in self._recent(now))

    def heard_of(self, now: float) -> list[SeenPop]:
        """All PoPs that have not said goodbye, silent or not: for `FORGOTTEN_S`."""
        recent = [(pop, known) for pop, known in sorted(self._known.items()) if now - known.sent_at < FORGOTTEN_S]
        return [_seen(pop, known, now) for pop, known in recent]

    def gone(self, now: float) -> set[str]:
        """PoPs that have said goodbye, and have not come again: for `FORGOTTEN_S`."""
        return {pop for pop, since in self._gone.items() if now - since < FORGOTTEN_S}

    def cut_off(self, now: float) -> bool:
        """Whether it is this directory, and not the PoPs, whose network is cut: more than half of them fell silent at
        once. Those that had fallen silent before do not count."""
        known = [known for _, known in self._recent(now)]
        silent = [known.sent_at for known in known if not _alive(known, now)]
        last = max(silent, default=0.0)
        at_once = [sent_at for sent_at in silent if last - sent_at <= AT_ONCE_S]
        lived = len(known) - len(silent) + len(at_once)
        return lived >= FEWEST and 2 * len(at_once) > lived

    def _recent(self, now: float) -> Iterator[tuple[str, _KnownRun]]:
        return ((pop, known) for pop, known in self._known.items() if now - known.sent_at < KNOWN_S)


def _alive(known: _KnownRun, now: float) -> bool:
    return now - known.sent_at < LEASE_S


def _seen(pop: str, known: _KnownRun, now: float) -> SeenPop:
    return SeenPop(pop, known.report, now - known.sent_at, _pending(known, now), not _alive(known, now))


def _pending(known: _KnownRun, now: float) -> int:
    over = list(takewhile(lambda call: now - known.pending[call] >= PENDING_S, known.pending))  # The oldest come first.
    for call in over:
        del known.pending[call]
    return len(known.pending)

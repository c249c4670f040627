"""Which PoPs may be asked what is not about one call: what any of them knows that could take the caller's call."""

from collections.abc import Sequence

from voicepipe.directory.router import WantedCall, fit
from voicepipe.directory.view import SeenPop


def askable(pops: Sequence[SeenPop], wanted: WantedCall, about: str = "") -> list[SeenPop]:
    """Those that may take such a call, the best first. `about`: an agent; those that have it, if any. One that drains
    or is silent is asked only where all do. Raises NoPop, which says what none has."""
    possible = fit(pops, wanted)
    having = [seen for seen in possible if about in seen.condition.agents] or possible
    staying = [seen for seen in having if not seen.silent and seen.condition.status != "draining"] or having
    return sorted(staying, key=lambda seen: (seen.silent, seen.condition.status != "ok", seen.pop))

"""Reports of PoPs that there are not."""

from typing import Any

import msgspec

from voicepipe.base.places import Place
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.report import Condition, PopReport

FRANKFURT, LONDON, VIRGINIA, TOKYO = Place(50.1, 8.7), Place(51.5, -0.1), Place(39.0, -77.5), Place(35.7, 139.7)


def condition(**changes: Any) -> Condition:
    """Of a PoP in Frankfurt that has nothing to do."""
    idle = Condition(
        status="ok",
        slots=36,
        calls=0,
        predicted_ms=160.0,
        budget_ms=300.0,
        region="fra",
        zone="eu",
        place=FRANKFURT,
        url="https://fra.example",
        kinds=("websocket", "webrtc"),
        agents={"front-desk": "en"},
    )
    return msgspec.structs.replace(idle, **changes)


def report(seq: int = 0, *, epoch: int = 1_700_000_000_000, begun: tuple[str, ...] = (), **changes: Any) -> PopReport:
    """The n-th of its run was made after n seconds."""
    return PopReport(
        epoch=epoch, seq=seq, uptime_s=float(seq), clock_s=epoch / 1000 + seq, condition=condition(**changes),
        begun=begun,
    )  # fmt: skip


def seen(pop: str, *, age_s: float = 0.5, pending: int = 0, silent: bool = False, **changes: Any) -> SeenPop:
    """A PoP as a view has it."""
    return SeenPop(pop, report(**changes), age_s, pending, silent)

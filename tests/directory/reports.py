"""Reports of PoPs that there are not."""

from typing import Any

import msgspec

from voicepipe.directory.places import Place
from voicepipe.directory.report import Report
from voicepipe.directory.view import Seen

FRANKFURT, LONDON, VIRGINIA, TOKYO = Place(50.1, 8.7), Place(51.5, -0.1), Place(39.0, -77.5), Place(35.7, 139.7)


def report(seq: int = 0, *, epoch: int = 1_700_000_000_000, uptime_s: float | None = None, **changes: Any) -> Report:
    """One of a PoP in Frankfurt that has nothing to do; the n-th was made after n seconds."""
    made = Report(
        epoch=epoch,
        seq=seq,
        uptime_s=float(seq) if uptime_s is None else uptime_s,
        clock_s=epoch / 1000 + seq,
        status="ok",
        slots=36,
        calls=0,
        predicted_ms=160.0,
        budget_ms=300.0,
        region="fra",
        zone="eu",
        place=FRANKFURT,
        urls={"websocket": "wss://fra.example/v1/realtime", "webrtc": "https://fra.example/v1/realtime/calls"},
        agents={"front-desk": "en"},
    )
    return msgspec.structs.replace(made, **changes)


def seen(pop: str, *, age_s: float = 0.5, pending: int = 0, silent: bool = False, **changes: Any) -> Seen:
    """A PoP as a view has it."""
    return Seen(pop, report(**changes), age_s, pending, silent)

"""What is broken, how it is mended, and what is expected of the PoP meanwhile."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.chaos.site import Site


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    says: str
    begin: Callable[[Site], None]
    end: Callable[[Site], None]
    down_s: float | None = None
    """/readyz is to answer 503 so soon; None: it is to stay 200, for the PoP can serve."""
    answers: bool = False
    """Turns are answered all the same, not by the fallback."""
    hears: bool = False
    """Callers speak, since it is the hearing that breaks."""


def _signalled(number: signal.Signals, site: Site) -> None:
    site.model.signal(number)


def _set(name: str, site: Site) -> None:
    site.switches.set(name)


def _clear(name: str, site: Site) -> None:
    site.switches.clear(name)


def _switch(name: str, says: str, **expected: float | bool | None) -> Fault:
    return Fault(name, says, partial(_set, name), partial(_clear, name), **expected)  # type: ignore[arg-type]


KILLED = 2.0
"""Seconds after which /readyz tells of an engine that is gone."""
MODEL_LIMIT_S = 4.0
"""`openai.timeout_ms` of the PoP that is tried."""
VOICE_S, HEARING_S = 12.0, 14.0
"""The limit of espeak-ng, and that of Whisper for the two seconds of the question; and two seconds."""

FAILING_S = 25.0
"""Callers' turns bring three answers that fail, and then a trial fails as well: so an engine is down."""

FAULTS = (
    Fault("model-killed", "the language model's server is killed", partial(_signalled, signal.SIGKILL),
          lambda site: site.model.start(), KILLED),
    Fault("model-stopped", "it hangs (SIGSTOP): connections are taken, nothing is answered",
          partial(_signalled, signal.SIGSTOP), partial(_signalled, signal.SIGCONT), MODEL_LIMIT_S + 2),
    _switch("model-slow", "it is slow: 1.5 s to the first word", answers=True),
    _switch("model-garbage", "it breaks off with bytes that are no JSON", down_s=FAILING_S),
    _switch("model-page", "a proxy's page comes in place of replies", down_s=FAILING_S),
    _switch("model-refuses", "it refuses every request with status 500", down_s=FAILING_S),
    _switch("voice-hangs", "a call into espeak-ng does not come back", down_s=VOICE_S),
    _switch("voice-fails", "every call into espeak-ng fails, in a way that nobody expected", down_s=FAILING_S),
    _switch("voice-slow", "every phrase takes 400 ms longer", answers=True),
    _switch("disk-full", "the log's device is full, and no file can grow", answers=True),
    _switch("clock-forward", "the clock is set forward by a day", answers=True),
    _switch("clock-back", "the clock is set back by a day", answers=True),
    _switch("recogniser-hangs", "a pass of Whisper does not come back", down_s=HEARING_S, hears=True),
)  # fmt: skip

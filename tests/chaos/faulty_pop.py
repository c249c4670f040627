"""A PoP in which things break while a switch is on: `python -m tests.chaos.faulty_pop pop ...`, as `voicepipe pop ...`.

Only what cannot be broken from outside is broken here, at the edge of our code: where a library is called, where the
clock is read, where the log is written.
"""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from tests.chaos.switches import Switches

POLL_S = 0.05
DAY_S = 86_400.0


def main() -> int:
    switches = Switches.inherited()
    real = time.time
    shift = {"clock-forward": DAY_S, "clock-back": -DAY_S}
    time.time = lambda: real() + sum(by for name, by in shift.items() if switches.on(name))

    from voicepipe.commands.cli import main as voicepipe
    from voicepipe.engines.asr import whisper_model
    from voicepipe.engines.tts import espeak

    hangs(espeak._Library, "synthesize", switches, "voice-hangs")
    hangs(whisper_model.LoadedWhisper, "read", switches, "recogniser-hangs")
    fails(espeak._Library, "synthesize", switches, "voice-fails")
    slow(espeak._Library, "synthesize", switches, "voice-slow")
    threading.Thread(target=fill_disk, args=(switches,), daemon=True).start()
    return voicepipe(sys.argv[1:])


def around(owner: Any, name: str, before: Callable[[], None]) -> None:
    inner = getattr(owner, name)

    @wraps(inner)
    def outer(*args: Any, **named: Any) -> Any:
        before()
        return inner(*args, **named)

    setattr(owner, name, outer)


def hangs(owner: Any, name: str, switches: Switches, switch: str) -> None:
    """The call does not come back while the switch is on."""

    def before() -> None:
        while switches.on(switch):
            time.sleep(POLL_S)

    around(owner, name, before)


def slow(owner: Any, name: str, switches: Switches, switch: str) -> None:
    """It takes 400 ms longer."""
    around(owner, name, lambda: time.sleep(0.4) if switches.on(switch) else None)


def fails(owner: Any, name: str, switches: Switches, switch: str) -> None:
    def before() -> None:
        if switches.on(switch):
            raise RuntimeError("broken by a switch")  # No EngineError: it is what nobody expected.

    around(owner, name, before)


def fill_disk(switches: Switches) -> None:
    """While the switch is on the log's device is full, and no file can be made longer."""
    kept = os.dup(1), os.dup(2)
    full = os.open("/dev/full", os.O_WRONLY)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    was = False
    while True:
        time.sleep(POLL_S)
        now = switches.on("disk-full")
        if now != was:
            for at, descriptor in enumerate(kept, 1):
                os.dup2(full if now else descriptor, at)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0 if now else most, most))
            was = now


if __name__ == "__main__":
    sys.exit(main())

"""What a call that has ended leaves behind for Python's cycle collector: nothing may."""

import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from tests.ingress.fake_pop import FakePop, settled
from tests.support.waiting import until

ENDS = 4
"""Calls: what one alone leaves may be the last one of something."""
PARTS = (
    "aiortc.", "aioice.", "OpenSSL.SSL.C", "voicepipe.rtp.", "voicepipe.audio.", "voicepipe.ingress.rtp_line",
    "voicepipe.ingress.far_", "voicepipe.ingress.blocks", "voicepipe.ingress.webrtc.", "voicepipe.ingress.realtime.",
    "voicepipe.ingress.sip.call", "voicepipe.ingress.sip.media", "voicepipe.ingress.sip.dialog",
    "voicepipe.ingress.hosted", "voicepipe.ingress.telephony.line", "voicepipe.ingress.telephony.stream",
)  # fmt: skip
"""Modules whose objects a call is made of. Of pyOpenSSL its connections and contexts: the small helper by which a
context checks certificates is a circle of its own."""


@contextmanager
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def parts() -> Counter[str]:
    kinds = (type(found) for found in gc.get_objects())
    return Counter(f"{kind.__module__}.{kind.__name__}" for kind in kinds if str(kind.__module__).startswith(PARTS))


async def freed(pop: FakePop, one: Callable[[], Awaitable[None]]) -> None:
    """Nothing is left of calls such as `one` places and ends, at `pop`, which is served."""
    await one()
    await settled(pop)
    pop.calls.clear()
    with uncollected():
        before = parts()
        for _ in range(ENDS):
            await one()
        await settled(pop)
        pop.calls.clear()
        try:
            await until(lambda: not (parts() - before), 10)
        except TimeoutError:
            raise AssertionError(f"left of {ENDS} calls: {parts() - before}") from None

"""Phone calls of a PoP without a telephone: the PoP is told what a call would have told it."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.observe.test_calls import LINE, answer, spoken
from voicepipe.call_settings import Origin
from voicepipe.conversation.events import CallEnded
from voicepipe.observe.calls import LiveCall
from voicepipe.pop.pop import Pop

NUMBER = "+4930123456"


@contextmanager
def phoning(
    pop: Pop, number: int, caller: str = NUMBER, tenant: str = "acme", variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A call of one turn, which lasts until the context ends; its id."""
    call_id, now = f"rtc_{pop.config.pop.id}.{number:012x}", time.time()
    with pop.dashboard.watched(tenant, "front-desk") as watched:
        call: LiveCall = watched
        call.answered(call_id, LINE, now, Origin(caller=caller), variables)
        for event in (spoken(f"my name is Rumpelstiltskin, number {number}"), *answer(number)):
            call.note(event, now)
        yield call_id
        call.note(CallEnded("caller"), now)
        call.ended("caller", now)

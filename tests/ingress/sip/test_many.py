"""Two hundred calls by SIP, set up and torn down in every way: nothing crashes, nothing is left."""

import asyncio
import gc
import os

import pytest

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.sip.peer import Phone, phone, sip
from tests.ingress.sip.test_strangers import stack
from tests.support.waiting import until
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.sip.names import ResolvingSender
from voicepipe.ingress.sip.sip_call import SipCall
from voicepipe.ingress.sip.stack import IncomingRequest
from voicepipe.rtp.rtp_session import RtpSession

CALLS, AT_A_TIME = 200, 10
KINDS = (HostedCall, RtpSession, SipCall, IncomingRequest)


async def hung_up(ann: Phone, pop: FakePop) -> None:
    ann.media_of(await ann.dial())
    await ann.talk(3, 3)
    assert (await ann.hang_up()).code == 200


async def ended_by_us(ann: Phone, pop: FakePop) -> None:
    await ann.dial(uri=f"sip:{ann.call_id}@127.0.0.1")
    call = next(call for call in pop.calls if call.settings.origin.called == ann.call_id)
    await call.line.hang_up()
    await ann.got("BYE")


async def never_acknowledged(ann: Phone, pop: FakePop) -> None:
    ann.invite()
    ann.took(await ann.final("INVITE"))
    await ann.got("BYE")


async def given_up(ann: Phone, pop: FakePop) -> None:
    ann.invite()
    ann.request("CANCEL", seq=ann.seq, branch=ann.branch)
    if (answer := await ann.final("INVITE")).code == 200:  # It was answered before.
        ann.took(answer)
        ann.ack()
        await ann.hang_up()


async def refused(ann: Phone, pop: FakePop) -> None:
    assert (await ann.dial("v=0\r\nnonsense")).code == 488


async def held_and_changed(ann: Phone, pop: FakePop) -> None:
    await ann.dial()
    await ann.dial(ann.sdp(direction="inactive"))
    await ann.dial(ann.sdp(formats="8 101"))
    await ann.hang_up()


async def gone(ann: Phone, pop: FakePop) -> None:
    """Its network is: nobody hangs up, and nobody answers our BYE."""
    ann.answers = False
    await ann.dial()


WAYS = (hung_up, ended_by_us, never_acknowledged, given_up, refused, held_and_changed, gone)


def counted() -> tuple[int, int, int]:
    """Objects of a call, descriptors, tasks."""
    gc.collect()
    held = sum(type(thing) in KINDS for thing in gc.get_objects())
    return held, len(os.listdir("/dev/fd")), len(asyncio.all_tasks())


@pytest.mark.usefixtures("hasty")
async def test_two_hundred_calls_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ResolvingSender, "send", lambda *_: None)
    pop = FakePop(sip(silent_ms=1000))
    async with serving(pop):
        before = counted()
        places = asyncio.Semaphore(AT_A_TIME)

        async def placed(number: int) -> None:
            async with places, phone(pop) as ann:
                await WAYS[number % len(WAYS)](ann, pop)

        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            for number in range(CALLS):
                group.create_task(placed(number))
        await settled(pop)
        pop.calls.clear()
        left = stack()._transactions
        await until(lambda: not (left.tserver or left.tclient or left.l1rcache or left.l2rcache))
        try:
            await until(lambda: all(now <= then for now, then in zip(counted(), before, strict=True)))
        except TimeoutError:
            raise AssertionError(f"{before} before, {counted()} now") from None

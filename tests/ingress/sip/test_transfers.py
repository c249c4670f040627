"""Callers by SIP who are sent elsewhere (REFER): taken, refused, and gone on the way."""

import asyncio

import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import Phone, calling, sip
from tests.support.waiting import until
from voicepipe.base.errors import TransferFailed


async def transferring(pop: FakePop, ann: Phone) -> "asyncio.Task[None]":
    await ann.dial(headers=[("Allow", "INVITE, ACK, BYE, REFER, NOTIFY")])
    ann.answers = False
    task = asyncio.create_task(pop.calls[0].line.transfer("sip:desk@127.0.0.1"))
    refer = await ann.got("REFER")
    assert refer.header("refer-to") == "<sip:desk@127.0.0.1>"
    ann.answer(refer, "202 Accepted")
    return task


async def notify(ann: Phone, status: str, after: int, of: str = "") -> None:
    """`of`: the number of the REFER."""
    headers = [("Event", f"refer;id={of}" if of else "refer"), ("Subscription-State", "active")]
    ann.request("NOTIFY", headers, f"SIP/2.0 {status}\r\n", kind="message/sipfrag;version=2.0")
    assert (await ann.final("NOTIFY", after)).code == 200


async def test_a_transfer_is_told_when_somebody_took_the_call() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        task = await transferring(pop, ann)
        await notify(ann, "100 Trying", len(ann.said))
        assert not task.done()
        await notify(ann, "200 OK", len(ann.said))
        await asyncio.wait_for(task, 60)
        ann.answers = True
        await ann.hang_up()


@pytest.mark.parametrize("way", ["notify", "refused", "not allowed"])
async def test_a_transfer_that_fails_says_why_and_the_call_goes_on(way: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        if way == "not allowed":
            await ann.dial(headers=[("Allow", "INVITE, ACK, BYE")])
            with pytest.raises(TransferFailed, match="does not take transfers"):
                await pop.calls[0].line.transfer("desk")
        elif way == "notify":
            task = await transferring(pop, ann)
            await notify(ann, "486 Busy Here", len(ann.said))
            with pytest.raises(TransferFailed, match="486 Busy Here"):
                await task
        else:
            await ann.dial()
            ann.answers = False
            task = asyncio.create_task(pop.calls[0].line.transfer("desk"))
            refer = await ann.got("REFER")
            assert refer.header("refer-to").startswith("<sip:desk@127.0.0.1")
            ann.answer(refer, "603 Decline")
            with pytest.raises(TransferFailed, match="603 Decline"):
                await task
        ann.answers = True
        before = len(ann.heard())
        await until(lambda: len(ann.heard()) > before)
        assert (await ann.hang_up()).code == 200


async def test_what_becomes_of_an_attempt_that_was_given_up_says_nothing_of_the_next() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        given_up = await transferring(pop, ann)
        [first] = [said.header("cseq").split()[0] for said in ann.said if said.start.startswith("REFER")]
        given_up.cancel()
        after = len(ann.said)
        task = asyncio.create_task(pop.calls[0].line.transfer("sip:other@127.0.0.1"))
        refer = await ann.got("REFER", after=after)
        ann.answer(refer, "202 Accepted")
        await notify(ann, "487 Request Terminated", len(ann.said), first)
        assert not task.done()
        await notify(ann, "200 OK", len(ann.said), refer.header("cseq").split()[0])
        await asyncio.wait_for(task, 60)
        ann.answers = True
        await ann.hang_up()


async def test_a_far_end_that_hangs_up_over_a_transfer_has_taken_it() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        task = await transferring(pop, ann)
        await ann.hang_up()
        await asyncio.wait_for(task, 60)
        await pop.calls[0].line.hang_up()
        await settled(pop)
        assert not [said for said in ann.said if said.start.startswith("BYE")]

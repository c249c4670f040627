"""Calls that ring while their agent's hook is asked, as calls do whose answer is not acknowledged: they hold slots."""

import asyncio

import msgspec
import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import phone, sip
from tests.support.waiting import until
from voicepipe.agent import Agent, AgentHooks, Origin
from voicepipe.base.errors import Declined
from voicepipe.call_api import NO_ANSWER, CallSlot, DoorKind, HookAnswer
from voicepipe.config.phone_config import SipTrunk
from voicepipe.config.pop_config import PopConfig

ONE = SipTrunk(name="one", addresses=("127.0.0.8",))
OTHER = SipTrunk(name="other", addresses=("127.0.0.9",))


class AskingPop(FakePop):
    """Its agent has a hook, which answers once `said` is set."""

    def __init__(self, *, slots: int = 4, ring_ms: int = 0) -> None:
        config = sip(trunks=(ONE, OTHER), ring_ms=ring_ms)
        super().__init__(msgspec.structs.replace(config, pop=PopConfig(slots=slots)))
        self.known["front-desk"] = Agent("front-desk", hooks=AgentHooks(before_call="hooks:ask", before_call_ms=10_000))
        self.said = asyncio.Event()
        self.fails: Exception | None = None

    async def ask_hook(
        self, slot: CallSlot, agent: Agent, origin: Origin, door: DoorKind, limit_ms: int | None = None
    ) -> HookAnswer:
        await self.said.wait()
        if self.fails:
            raise self.fails
        return NO_ANSWER


async def test_the_sender_with_most_calls_gives_one_up_to_another_sender() -> None:
    pop = AskingPop()
    async with serving(pop), phone(pop, "127.0.0.8") as ann, phone(pop, "127.0.0.8") as bob:
        for each in (ann, bob):
            each.invite()
            await each.got("INVITE", 180)
        async with phone(pop, "127.0.0.9") as cat:
            cat.invite()
            await cat.got("INVITE", 180)
            assert (await ann.final("INVITE")).code == 503
            assert [(refused.reason, refused.status) for refused in pop.refusals] == [("full", 503)]
            pop.said.set()
            for each in (bob, cat):
                each.took(await each.final("INVITE"))
                each.ack()
                await each.hang_up()
        await until(lambda: pop.live == 0)


async def test_a_call_that_rings_is_answered_after_the_ringing_time_and_not_twice_it() -> None:
    pop = AskingPop(ring_ms=300)
    pop.said.set()
    async with serving(pop), phone(pop, "127.0.0.8") as ann:
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await ann.dial()
        assert (answer.code, loop.time() - began >= 0.3) == (200, True)
        assert len([message for message in ann.said if message.code == 180]) == 1
        await ann.hang_up()


@pytest.mark.parametrize(
    ("error", "answer"), [(Declined("Not today."), 603), (RuntimeError("a fault of ours"), 500)], ids=["no", "fault"]
)
async def test_whatever_comes_of_it_the_caller_is_answered_and_the_slot_is_free(error: Exception, answer: int) -> None:
    pop = AskingPop()
    pop.fails = error
    pop.said.set()
    async with serving(pop), phone(pop, "127.0.0.8") as ann:
        assert (await ann.dial()).code == answer
        await until(lambda: pop.live == 0)
        assert len(pop.refusals) == 1


async def test_a_caller_who_cancels_is_no_refusal() -> None:
    pop = AskingPop()
    async with phone(pop, "127.0.0.8") as ann:
        async with serving(pop):
            ann.invite()
            await ann.got("INVITE", 180)
            ann.request("CANCEL", seq=ann.seq, branch=ann.branch)
            assert (await ann.final("INVITE")).code == 487
            await until(lambda: pop.live == 0)
    assert not pop.refusals

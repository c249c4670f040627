"""Calls that ring while their agent's hook is asked: they hold slots as all calls do."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import msgspec
import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import Phone, phone, sip
from tests.support.waiting import until
from voicepipe.agent import Agent, AgentHooks
from voicepipe.base.errors import Declined, PopFull
from voicepipe.call_api import NO_ANSWER, CallSlot, DoorKind, HookAnswer, Tenant
from voicepipe.call_settings import Origin
from voicepipe.config.phone_config import SipTrunk
from voicepipe.config.pop_config import PopConfig
from voicepipe.ingress.sip.unacknowledged import T1_S

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

    @contextmanager
    def admit(self, tenant: Tenant, agent: Agent, replaced: CallSlot | None = None) -> Iterator[FakePop]:
        if self.live - bool(replaced) >= self.config.pop.slots:
            raise PopFull("All slots are taken.")
        with super().admit(tenant, agent, replaced) as slot:
            yield slot

    async def ask_hook(
        self, slot: CallSlot, agent: Agent, origin: Origin, door: DoorKind, limit_ms: int | None = None
    ) -> HookAnswer:
        await self.said.wait()
        if self.fails:
            raise self.fails
        return NO_ANSWER


@asynccontextmanager
async def ringing(pop: FakePop, *hosts: str) -> AsyncIterator[list[Phone]]:
    """One telephone at each address, whose call rings."""
    async with AsyncExitStack() as phones:
        callers = [await phones.enter_async_context(phone(pop, host)) for host in hosts]
        for each in callers:
            each.invite()
            await each.got("INVITE", 180)
        yield callers


async def test_calls_that_ring_hold_all_slots_as_other_calls_do_and_give_way_to_nobody() -> None:
    pop = AskingPop(slots=4)
    async with serving(pop), ringing(pop, "127.0.0.8", "127.0.0.8", "127.0.0.8", "127.0.0.9") as callers:
        for host in ("127.0.0.8", "127.0.0.9"):
            async with phone(pop, host) as late:
                assert (await late.dial()).code == 503
        assert [refused.reason for refused in pop.refusals] == ["full", "full"]
        pop.said.set()
        for each in callers:
            answer = await each.final("INVITE")
            assert answer.code == 200
            each.took(answer)
            each.ack()
            await each.hang_up()
        await until(lambda: pop.live == 0)


async def test_who_forges_invites_of_a_trunk_does_not_keep_others_out_by_calls_that_ring_again_and_again() -> None:
    """Each of them is answered once, and not acknowledged. Those in their places count as not acknowledged at once."""
    pop = AskingPop(slots=4)
    async with serving(pop), ringing(pop, *["127.0.0.8"] * 4) as forged:
        pop.said.set()
        for each in forged:
            assert (await each.final("INVITE")).code == 200
        pop.said.clear()
        await asyncio.sleep(T1_S)
        async with ringing(pop, *["127.0.0.8"] * 4) as again:
            for _ in range(2):
                async with ringing(pop, "127.0.0.9"):
                    assert pop.live == 4
            await until(lambda: any(said.code == 503 for said in again[0].said))
        pop.said.set()


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

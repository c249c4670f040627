"""Phone calls by Twilio and Telnyx whose agents have a hook: what callers get, and that each slot is given back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.telephony import telnyx_provider, test_twilio, twilio_provider
from tests.ingress.telephony.telnyx_provider import Api, telnyx
from tests.ingress.telephony.test_twilio import opened
from tests.ingress.telephony.twilio_provider import verbs
from tests.support.waiting import until
from voicepipe.agent import Agent, AgentHooks
from voicepipe.base.errors import Declined, PopFull
from voicepipe.call_api import HookAnswer
from voicepipe.call_settings import Origin
from voicepipe.ingress.access import Gone
from voicepipe.ingress.telephony import hooked_calls, stream
from voicepipe.ingress.telephony import telnyx as telnyx_module
from voicepipe.ingress.telephony import twilio as twilio_module

HOOK = "https://shop.example/before-call"
CLINIC = HookAnswer(agent="clinic", greeting="Hello Ann.", variables={"name": "Ann"})


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(twilio_provider.ENV, twilio_provider.TOKEN)


def hooked(pop: FakePop, hook: Callable[[], Awaitable[HookAnswer]]) -> FakePop:
    """The front desk has this hook."""
    pop.known["front-desk"] = msgspec.structs.replace(pop.known["front-desk"], hooks=AgentHooks(before_call=HOOK))
    pop.hook = hook
    return pop


def says(answer: HookAnswer) -> Callable[[], Awaitable[HookAnswer]]:
    async def hook() -> HookAnswer:
        return answer

    return hook


def declines(sip_code: int) -> Callable[[], Awaitable[HookAnswer]]:
    async def hook() -> HookAnswer:
        raise Declined("not today", sip_code)

    return hook


async def never() -> HookAnswer:
    await asyncio.Event().wait()
    raise AssertionError


class Caller(Protocol):
    """Somebody who calls by one provider."""

    pop: FakePop

    async def ring(self) -> str:
        """The call comes: "" if it is answered, or why it is not."""

    def answered(self) -> Any:
        """Within the context its stream is open."""


@dataclass
class ByTwilio:
    pop: FakePop
    address: str
    twiml: Any = None

    async def ring(self) -> str:
        answer = await twilio_provider.post(f"http://{self.address}/twilio/voice", test_twilio.CALL)
        [self.twiml] = verbs(answer)
        return (self.twiml.get("reason") or "") if self.twiml.tag == "Reject" else ""

    @asynccontextmanager
    async def answered(self) -> AsyncIterator[None]:
        parameters = {one.get("name", ""): one.get("value", "") for one in self.twiml[0]}
        async with twilio_provider.streaming(f"ws://{self.address}/twilio/stream") as stream:
            await stream.start(parameters)
            yield


@dataclass
class ByTelnyx:
    pop: FakePop
    address: str
    api: Api

    async def ring(self) -> str:
        known = len(self.api.commands)
        await telnyx_provider.post(self.address, "call.initiated", direction="incoming", to="+4930123",
                                   **telnyx_provider.FROM)  # fmt: skip
        await until(lambda: len(self.api.commands) > known)
        action, body = self.api.commands[known]
        return {"USER_BUSY": "busy", "CALL_REJECTED": "rejected"}[body["cause"]] if action == "reject" else ""

    @asynccontextmanager
    async def answered(self) -> AsyncIterator[None]:
        await telnyx_provider.post(self.address, "call.answered", to="+4930123", **telnyx_provider.FROM)
        async with telnyx_provider.streaming(self.address, self.api):
            yield


@asynccontextmanager
async def calling(provider: str, hook: Callable[[], Awaitable[HookAnswer]]) -> AsyncIterator[Caller]:
    if provider == "twilio":
        async with serving(pop := hooked(opened(), hook)) as address:
            yield ByTwilio(pop, address)
    else:
        async with telnyx() as (pop, api, address):
            hooked(pop, hook)
            yield ByTelnyx(pop, address, api)


providers = pytest.mark.parametrize("provider", ["twilio", "telnyx"])


@providers
async def test_the_hook_is_asked_while_it_rings_and_its_agent_answers(provider: str) -> None:
    async with calling(provider, says(CLINIC)) as caller:
        assert await caller.ring() == ""
        assert caller.pop.asked == [("front-desk", Origin("+1555", "+4930123"), provider)]
        assert caller.pop.live == 1 and not caller.pop.calls, "its slot is held"
        async with caller.answered():
            await until(lambda: caller.pop.calls)
            settings = caller.pop.calls[0].settings
            assert (settings.agent.name, settings.agent.greeting) == ("clinic", "Hello Ann.")
            assert settings.variables == {"name": "Ann"}
            assert caller.pop.live == 1 and len(caller.pop.asked) == 1
        await until(lambda: not caller.pop.live)


@providers
@pytest.mark.parametrize(("code", "why"), [(603, "rejected"), (486, "busy"), (600, "busy"), (404, "rejected")])
async def test_a_hook_that_refuses(provider: str, code: int, why: str) -> None:
    async with calling(provider, declines(code)) as caller:
        assert await caller.ring() == why
        await until(lambda: not caller.pop.live)
        assert [refusal.reason for refusal in caller.pop.refusals] == ["declined"]
        assert not caller.pop.calls


@providers
async def test_a_hook_that_takes_too_long_for_the_provider(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The PoP has a limit of its own; this one is the provider's."""
    monkeypatch.setattr(twilio_module, "ASKED_MS", 50)
    monkeypatch.setattr(telnyx_module, "ASKED_MS", 50)
    async with calling(provider, never) as caller:
        assert await caller.ring() == ""
        async with caller.answered():
            await until(lambda: caller.pop.calls)
            assert caller.pop.calls[0].settings.agent.name == "front-desk"
            assert [run.outcome for run in caller.pop.hook_runs] == ["timeout"]


@providers
async def test_a_pop_that_is_full_asks_no_hook(provider: str) -> None:
    async with calling(provider, says(CLINIC)) as caller:
        caller.pop.refuse = PopFull("full")
        assert await caller.ring() == "busy"
        assert not caller.pop.asked


@providers
async def test_a_caller_who_has_gone_before_the_stream_leaves_no_slot(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooked_calls, "HELD_S", 0.05)
    async with calling(provider, says(CLINIC)) as caller:
        assert await caller.ring() == ""
        await until(lambda: not caller.pop.live)


@providers
async def test_a_slot_that_was_given_back_is_taken_again_where_there_is_one(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooked_calls, "HELD_S", 0.05)
    async with calling(provider, says(CLINIC)) as caller:
        assert await caller.ring() == ""
        await until(lambda: not caller.pop.live)
        async with caller.answered():
            await until(lambda: caller.pop.calls)
            assert caller.pop.calls[0].settings.agent.name == "clinic" and len(caller.pop.asked) == 1


async def test_a_caller_by_telnyx_hangs_up_while_the_hook_is_asked() -> None:
    async with telnyx() as (pop, api, address):
        hooked(pop, never)
        await telnyx_provider.post(address, "call.initiated", direction="incoming", to="+4930123",
                                   **telnyx_provider.FROM)  # fmt: skip
        await until(lambda: pop.asked)
        assert pop.live == 1 and not api.commands
        await telnyx_provider.post(address, "call.hangup")
        await until(lambda: not pop.live)
        assert not api.commands and not pop.refusals


async def test_a_call_that_telnyx_does_not_answer_holds_no_slot() -> None:
    async with telnyx() as (pop, api, address):
        hooked(pop, says(CLINIC))
        api.status["answer"] = 500, {}
        await telnyx_provider.post(address, "call.initiated", direction="incoming", to="+4930123",
                                   **telnyx_provider.FROM)  # fmt: skip
        await until(lambda: api.did("answer") and not pop.live)


async def test_a_webhook_that_is_repeated_asks_once_and_holds_one_slot() -> None:
    asked = asyncio.Event()

    async def slowly() -> HookAnswer:
        await asked.wait()
        return CLINIC

    async with serving(pop := hooked(opened(), slowly)) as address:
        ringing = [asyncio.create_task(test_twilio.rung(address)) for _ in range(3)]
        await until(lambda: pop.asked)
        pop.refuse = PopFull("its own call has the last slot")
        ringing.append(asyncio.create_task(test_twilio.rung(address)))
        asked.set()
        first, *_ = await asyncio.gather(*ringing)
        assert await test_twilio.rung(address) != first
        assert len(pop.asked) == pop.live == 1
        async with twilio_provider.streaming(f"ws://{address}/twilio/stream") as stream:
            await stream.start(first)
            await until(lambda: pop.calls)
            assert pop.live == 1


async def test_a_call_that_comes_back_from_a_transfer_is_answered_by_the_same_agent() -> None:
    async with serving(pop := hooked(opened(), says(CLINIC))) as address:
        url, status = f"http://{address}/twilio/voice", dict[str, str]()
        for number in range(2):
            [connected] = verbs(await twilio_provider.post(url, test_twilio.CALL | status))
            async with twilio_provider.streaming(connected[0].get("url") or "") as stream:
                await stream.start({one.get("name", ""): one.get("value", "") for one in connected[0]})
                await until(lambda: len(pop.calls) > number)  # noqa: B023
                agent = pop.calls[number].settings.agent
                assert agent.name == "clinic"
                assert agent.greeting == (agent.transfer_failed if number else "Hello Ann.")
                await pop.calls[number].line.transfer("+4930")
                await pop.calls[number].line.hang_up()
                await stream.closed.wait()
            [dial] = verbs(await twilio_provider.post(connected.get("action") or "", test_twilio.CALL))
            url, status = dial.get("action") or "", {"DialCallStatus": "no-answer"}
        assert len(pop.asked) == 1


async def test_what_the_hook_said_is_handed_over_to_the_process_that_takes_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hooked_calls, "HELD_S", 0.05)
    accepted = msgspec.structs.replace(CLINIC, session=b'{"instructions": "Be kind."}')
    old, new = hooked(opened(), says(accepted)), hooked(opened(), declines(603))
    async with serving(old) as address, serving(new) as other:
        asked = await test_twilio.rung(address)
        for name, state in old.takeover_parts.given().items():
            new.takeover_parts.taken(name, state)
        async with twilio_provider.streaming(f"ws://{other}/twilio/stream") as stream:
            await stream.start(asked)
            await until(lambda: new.calls)
            assert new.calls[0].settings.agent.name == "clinic" and not new.asked


async def test_twiml_of_ones_own_has_the_hook_asked_when_the_stream_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(pop := hooked(opened(own_twiml=True), says(CLINIC))) as address:
        async with twilio_provider.streaming(f"ws://{address}/twilio/stream") as begun:
            await begun.start({"from": "+1555", "tier": "gold"})
            await until(lambda: pop.calls)
            assert pop.asked == [("front-desk", Origin("+1555", "", {"tier": "gold"}), "twilio")]
            assert pop.calls[0].settings.agent.name == "clinic"
        pop.hook = declines(603)
        async with twilio_provider.streaming(f"ws://{address}/twilio/stream") as begun:
            await begun.start({})
            await begun.closed.wait()
            assert begun.socket.close_code == 1008 and pop.refusals[-1].reason == "declined"
        monkeypatch.setattr(stream, "SILENT_MS", 50)
        pop.hook = never
        async with twilio_provider.streaming(f"ws://{address}/twilio/stream") as begun:
            await begun.start({})
            await until(lambda: len(pop.calls) == 2)
            assert pop.calls[1].settings.agent.name == "front-desk", "nobody waits in silence"
            assert pop.hook_runs[-1].outcome == "timeout"


async def test_headers_of_a_sip_call_are_the_hooks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooked_calls, "HELD_S", 0.05)
    async with serving(pop := hooked(opened(), says(CLINIC))) as address:
        form = test_twilio.CALL | {"SipHeader_X-Tier": "gold", "SipHeader_From": "x"}
        await twilio_provider.post(f"http://{address}/twilio/voice", form)
    assert pop.asked[0][1].headers == {"X-Tier": "gold"}
    async with telnyx() as (pop, api, address):
        hooked(pop, says(CLINIC))
        headers = [{"name": "X-Tier", "value": "gold"}, {"name": "User-to-User", "value": "x"}]
        await telnyx_provider.post(address, "call.initiated", direction="incoming", custom_headers=headers)
        await until(lambda: api.did("answer"))
        assert pop.asked[0][1].headers == {"X-Tier": "gold"}
        await telnyx_provider.post(address, "call.hangup")


async def test_a_stream_that_has_not_waited_for_the_hook_leaves_no_slot() -> None:
    pop = hooked(FakePop(), never)
    calls = hooked_calls.HookedCalls(pop, "twilio")
    answer = asyncio.create_task(calls.ask("CA1", pop.tenant(None), pop.agent(None), Origin(), 60_000))
    await until(lambda: pop.asked)
    assert calls.take("CA1") is None
    assert pop.live == 0, "at once, and not when Python collects its garbage"
    with pytest.raises(Gone):
        await answer
    await calls.close()


async def test_a_call_that_the_hook_has_refused_has_no_slot_to_take() -> None:
    pop = hooked(FakePop(), declines(603))
    calls = hooked_calls.HookedCalls(pop, "twilio")
    with pytest.raises(Declined):
        await calls.ask("CA1", pop.tenant(None), pop.agent(None), Origin(), 60_000)
    assert calls.take("CA1") is None
    await calls.close()


async def test_a_thousand_calls_leave_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, given up, taken, never streamed, in turn."""
    monkeypatch.setattr(hooked_calls, "HELD_S", 0.0)
    pop = FakePop()
    hooks = [says(CLINIC), declines(603), never, says(CLINIC)]
    calls = hooked_calls.HookedCalls(pop, "twilio")
    agent, tenant = Agent("front-desk"), pop.tenant(None)
    for number in range(1000):
        pop.hook = hooks[number % 4]
        answer = asyncio.create_task(calls.ask(f"CA{number}", tenant, agent, Origin(), 60_000))
        await asyncio.sleep(0)
        if number % 4 == 2:
            calls.give_up(f"CA{number}")
        await asyncio.wait({answer})
        answer.exception()
        if number % 4 == 0 and (slot := calls.take(f"CA{number}")):
            with slot:
                assert pop.live
    await until(lambda: not pop.live)
    await calls.close()

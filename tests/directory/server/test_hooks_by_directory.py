"""Phone calls that a directory sends to a PoP whose agent has a hook. PoPs run, the providers are played."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from openai import AsyncOpenAI

from tests.directory.fleets import public_key
from tests.directory.server.test_provider_webhooks import INCOMING, Site, at, providers, site, streamed
from tests.ingress.telephony import telnyx_provider
from tests.ingress.telephony.twilio_provider import verbs
from tests.support.hook_server import BREAKS, SLOW, HookServer, hook_server
from tests.support.waiting import until
from voicepipe.config import Config
from voicepipe.engines.base import Answering
from voicepipe.ingress.telephony import hooked_calls, twilio

pytestmark = pytest.mark.e2e
TO_CLINIC = {"agent": "clinic", "greeting": "Hello Ann."}
Fleet = Callable[..., AbstractAsyncContextManager[tuple[Site, HookServer]]]


def agents(folder: Path, url: str, *, incoming: bool, before_call_ms: int) -> str:
    """The path of a folder with a clinic, and a front desk whose hook may name it. `incoming`: the hook is a program
    that accepts calls."""
    folder.mkdir()
    hook = f'before_call = "{url}"\nbefore_call_ms = {before_call_ms}'
    if incoming:
        hook = f'incoming_call = "{url}"\nsecret_env = "INCOMING_SECRET"'
    (folder / "front-desk.toml").write_text(f'name = "front-desk"\n[hooks]\n{hook}\nagents = ["clinic"]\n')
    (folder / "clinic.toml").write_text('name = "clinic"\n')
    return str(folder)


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Frankfurt and London, which is farther away. `hook`: as in `agents`."""
    monkeypatch.setattr(hooked_calls, "HELD_S", 1.0)
    monkeypatch.setenv("INCOMING_SECRET", f"whsec_{b64encode(bytes(32)).decode()}")

    @asynccontextmanager
    async def running(*answers: Any, **hook: Any) -> AsyncIterator[tuple[Site, HookServer]]:
        async with hook_server(*answers) as hooks:
            of_hook = {"incoming": False, "before_call_ms": 10_000} | hook
            fra = agents(tmp_path / "fra", hooks.url, **of_hook)
            folders = fra, agents(tmp_path / "lhr", hooks.url, **of_hook)
            two: list[Config] = [
                msgspec.structs.replace(config, pop=msgspec.structs.replace(config.pop, agents=folder))
                for config, folder in zip(providers(public_key(tmp_path), monkeypatch), folders, strict=True)
            ]
            async with site(two) as here:
                yield here, hooks
                await until(lambda: here.calls == [0, 0], 60)

    return running


def answering(here: Site) -> set[str]:
    """The agents that answer calls."""
    return {call.agent for pop in here.pops for call in pop.dashboard.view(None, 5).calls}


async def test_the_hook_of_the_pop_that_takes_the_call_is_asked_and_its_agent_answers(fleet: Fleet) -> None:
    async with fleet(TO_CLINIC) as (here, hooks):
        answer = await here.twilio()
        assert at(answer) == here.pops[0].config.http.port and len(hooks.asked) == 1
        assert here.calls == [1, 0], "its slot is held"
        async with streamed(answer):
            await until(lambda: answering(here) == {"clinic"}, 60)
        assert len(hooks.asked) == 1


async def test_a_pop_that_lacks_an_agent_whom_the_hook_may_name_is_not_chosen(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet(TO_CLINIC) as (here, _):
        lacks = {"clinic": "Agent clinic has no language model."}
        monkeypatch.setattr(here.pops[0].prepared, "answering", lambda agent: Answering("", lacks.get(agent.name, "")))
        directory = here.directories[0].directory
        await until(lambda: any(seen.condition.incomplete == ("front-desk", "") for seen in directory.pops()), 60)
        answer = await here.twilio()
        assert at(answer) == here.pops[1].config.http.port
        async with streamed(answer):
            await until(lambda: answering(here) == {"clinic"}, 60)


async def test_a_call_that_the_hook_refuses_is_refused_and_no_other_pop_is_asked(fleet: Fleet) -> None:
    async with fleet({"refuse": "not today"}) as (here, hooks):
        [reject] = verbs(await here.twilio())
        assert (reject.tag, reject.get("reason")) == ("Reject", "rejected")
        assert await here.telnyx_says("call.initiated", **INCOMING) == 200
        await until(lambda: here.telnyx.did("reject"), 60)
        assert [body["cause"] for body in here.telnyx.did("reject")] == ["CALL_REJECTED"]
        assert len(hooks.asked) == 2


async def test_a_hook_that_takes_longer_than_a_directory_waits_delays_no_call(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twilio, "FORWARDED_MS", 300)
    async with fleet(SLOW) as (here, hooks):
        answer = await here.twilio()
        assert at(answer) == here.pops[0].config.http.port and len(hooks.asked) == 1
        async with streamed(answer):
            await until(lambda: answering(here) == {"front-desk"}, 60)


async def test_by_telnyx_the_directory_waits_for_no_hook(fleet: Fleet) -> None:
    async with fleet(SLOW) as (here, hooks):
        assert await here.telnyx_says("call.initiated", **INCOMING) == 200
        await until(lambda: hooks.asked, 60)
        assert not here.telnyx.commands and here.calls == [1, 0]
        there = here.pops[0].config.fleet.url.removeprefix("http://")
        assert await telnyx_provider.post(there, "call.hangup") == 200
        await until(lambda: here.calls == [0, 0], 60)
        assert not here.telnyx.commands


async def test_by_telnyx_the_agent_answers_that_the_hook_names(fleet: Fleet) -> None:
    async with fleet(TO_CLINIC) as (here, _):
        assert await here.telnyx_says("call.initiated", **INCOMING) == 200
        await until(lambda: here.telnyx.did("answer"), 60)
        [answer] = here.telnyx.did("answer")
        there = here.pops[0].config.fleet.url.removeprefix("http://")
        state = answer["client_state"]
        assert await telnyx_provider.post(there, "call.answered", client_state=state, to="+4930123") == 200
        async with telnyx_provider.streaming(there, here.telnyx):
            await until(lambda: answering(here) == {"clinic"}, 60)


WRONG: dict[str, list[Any]] = {
    "slow": [SLOW],
    "an error": [500],
    "no JSON": ["nonsense"],
    "an unknown agent": [{"agent": "nobody"}],
    "an unknown key": [{"say": "Hello."}],
    "down": [BREAKS, BREAKS],  # It is asked again once.
}
OUTCOMES = ["front-desk"] * len(WRONG) + ["clinic", ""]
"""Who answers, in order: the agent's own file holds after what is wrong; then another agent is named; then the hook
refuses."""


def in_turn() -> list[Any]:
    return [*(answer for answers in WRONG.values() for answer in answers), TO_CLINIC, {"refuse": "not today"}]


async def by_twilio(here: Site, number: int) -> str:
    """The agent that answers the n-th call; empty: none."""
    call = {"CallSid": f"CA{number}", "From": "+1555", "To": "+4930123"}
    answer = await here.twilio(call)
    if verbs(answer)[0].tag == "Reject":
        return ""
    async with streamed(answer, call["CallSid"]):
        await until(lambda: answering(here), 60)
        [agent] = answering(here)
    return agent


async def by_telnyx(here: Site, number: int) -> str:
    """As `by_twilio`."""
    call: Any = {"call_control_id": f"v3:{number}"}
    here.telnyx.active.append(call)
    here.telnyx.commands.clear()
    assert await here.telnyx_says("call.initiated", **INCOMING | call) == 200
    await until(lambda: here.telnyx.commands, 60)
    action, body = here.telnyx.commands[0]
    if action == "reject":
        return ""
    there = body["webhook_url"].removeprefix("http://").partition("/")[0]
    answered = call | {"client_state": body["client_state"], "to": "+4930123"}
    assert await telnyx_provider.post(there, "call.answered", **answered) == 200
    async with telnyx_provider.streaming(there, here.telnyx, call_id=call["call_control_id"]):
        await until(lambda: answering(here), 60)
        [agent] = answering(here)
    return agent


@pytest.mark.parametrize("by", [by_twilio, by_telnyx])
async def test_whatever_the_hook_does_somebody_answers_or_it_refuses(
    fleet: Fleet, by: Callable[[Site, int], Awaitable[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twilio, "FORWARDED_MS", 1000)
    async with fleet(*in_turn(), before_call_ms=300) as (here, _):
        for number, expected in enumerate(OUTCOMES):
            assert await by(here, number) == expected, [*WRONG, "another agent", "refuses"][number]
            await until(lambda: here.calls == [0, 0], 60)


@pytest.mark.parametrize("accepted", [True, False])
async def test_a_program_accepts_or_rejects_calls_at_the_directory(fleet: Fleet, accepted: bool) -> None:
    async with fleet({}, incoming=True) as (here, hooks):
        sdk = AsyncOpenAI(api_key="none", base_url=f"{here.directory}/v1", max_retries=0)
        assert await here.telnyx_says("call.initiated", **INCOMING) == 200
        await until(lambda: hooks.asked, 60)
        calls, call_id = sdk.realtime.calls, hooks.asked[0]["data"]["call_id"]
        if not accepted:
            await calls.reject(call_id)
            await until(lambda: here.telnyx.did("reject"), 60)
            return
        long = "You speak with Ann. " * 2000
        accepting = asyncio.create_task(calls.accept(call_id, type="realtime", model="clinic", instructions=long))
        await until(lambda: here.telnyx.did("answer"), 60)
        [answer] = here.telnyx.did("answer")
        there = here.pops[0].config.fleet.url.removeprefix("http://")
        state = answer["client_state"]
        assert await telnyx_provider.post(there, "call.answered", client_state=state, to="+4930123") == 200
        async with telnyx_provider.streaming(there, here.telnyx):
            await accepting
            assert answering(here) == {"clinic"}

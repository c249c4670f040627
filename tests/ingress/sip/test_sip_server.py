"""Which request is whose, and which agent answers."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.sip.peer import Phone, calling, phone, sip
from tests.ingress.sip.test_sip_access import logged_in
from voicepipe.call_api import Tenant
from voicepipe.config import Config, TenantConfig
from voicepipe.config.phone_config import RouteConfig, SipTrunk, SipUser
from voicepipe.ingress import server
from voicepipe.pop import pop_http

TRUNK = SipTrunk(name="carrier", addresses=("127.0.0.0/8",))


async def test_which_agent_answers_is_a_table() -> None:
    tenants = (TenantConfig(name="acme", key_env="ACME_KEY"),)
    routes = (
        RouteConfig(called="+4930*", trunk="carrier", agent="clinic", tenant="acme"),
        RouteConfig(called="front", tenant="acme"),
    )
    config = msgspec.structs.replace(Config(), routes=routes, tenants=tenants)
    pop = FakePop(sip(config, trunks=(TRUNK,)), {"sk": Tenant("acme")})
    async with calling(pop) as ann:
        assert (await ann.dial(uri="sip:+49-30-1234@pop.example")).code == 200
        assert pop.calls[0].settings.agent.name == "clinic"
        await ann.hang_up()
        ann.to_tag, ann.target = "", ""
        assert (await ann.dial(uri="sip:+33123@pop.example")).code == 404


async def test_requests_within_a_call_that_is_not() -> None:
    async with calling(FakePop(sip())) as ann:
        for method in ("BYE", "INVITE", "INFO", "UPDATE"):
            ann.request(method, to_tag="nobody")
            assert (await ann.final(method)).code == 481
        ann.request("ACK", to_tag="nobody", seq=9)
        await asyncio.sleep(0.05)
        ann.request("OPTIONS")
        assert (await ann.final("OPTIONS")).code == 200


@pytest.mark.parametrize("acknowledged", [False, True])
async def test_an_invite_that_comes_again_is_the_same_call(acknowledged: bool) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        sent = ann.invite()
        ann.sip.sendto(sent, ann.server)
        answer = await ann.final("INVITE")
        ann.took(answer)
        if acknowledged:
            ann.ack()
            await asyncio.sleep(0.05)
        before = len(ann.said)
        ann.sip.sendto(sent, ann.server)
        again = await ann.final("INVITE", before)
        assert (again.code, again.header("to")) == (200, answer.header("to"))
        ann.ack()
        await ann.hang_up()
        assert len(pop.calls) == 1


async def test_an_invite_that_comes_twice_at_once_is_one_call() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.sip.sendto(ann.invite(), ann.server)
        ann.took(await ann.final("INVITE"))
        ann.ack()
        await ann.hang_up()
        assert len(pop.calls) == 1


async def test_an_invite_that_came_by_another_way_as_well_is_one_call() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        await ann.dial()
        ann.to_tag, tag = "", ann.to_tag
        before = len(ann.said)
        ann.invite(seq=ann.seq)
        assert (await ann.final("INVITE", before)).code == 482
        ann.to_tag = tag
        await ann.hang_up()
        assert len(pop.calls) == 1


@pytest.mark.slow
async def test_callers_who_hear_it_ring_are_told_that_the_server_goes_down() -> None:
    pop = FakePop(sip(ring_ms=60_000))
    task = asyncio.create_task(pop_http.serve(pop, server.bind(pop.config.http)))
    await pop.serving.wait()
    async with phone(pop) as ann:
        ann.invite()
        await ann.got("INVITE", 180)
        task.cancel()
        assert (await ann.final("INVITE")).code == 503
        await asyncio.wait({task})


@pytest.mark.slow
async def test_an_identity_is_asserted_by_trunks_alone() -> None:
    asserted = [("P-Asserted-Identity", "<tel:+4930777>")]
    for trunks, caller in (((TRUNK,), "+4930777"), ((), "ann")):
        pop = FakePop(sip(trunks=trunks))
        async with calling(pop) as ann:
            await ann.dial(headers=asserted)
            assert pop.calls[0].settings.origin.caller == caller
            await ann.hang_up()


DESK = SipUser(name="desk", password_env="DESK_PASSWORD")


@pytest.mark.parametrize("who", ["trunk", "user"])
async def test_nobody_takes_more_places_than_they_may(
    who: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DESK_PASSWORD", "s3cret")
    access: dict[str, Any] = {"trunk": {"trunks": (msgspec.structs.replace(TRUNK, calls=1),)},
                             "user": {"users": (msgspec.structs.replace(DESK, calls=1),)}}  # fmt: skip

    async def dialled(one: Phone) -> int:
        answer = await (logged_in(one, "INVITE") if who == "user" else one.dial())
        return int(answer.code)

    pop = FakePop(sip(**access[who]))
    async with serving(pop), phone(pop) as ann, phone(pop) as ben, phone(pop) as cleo:
        assert await dialled(ann) == 200
        assert await dialled(ben) == 486
        assert "has as many calls as it may have at a time (1)" in caplog.text
        await ann.hang_up()
        await settled(pop)
        assert await dialled(cleo) == 200
        await cleo.hang_up()

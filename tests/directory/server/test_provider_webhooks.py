"""Calls from Twilio and Telnyx whose webhooks come to a directory. PoPs run, the providers are played."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.directory.fleets import FRANKFURT, LONDON, SIGNER, Served, fleet, public_key, served, settings
from tests.ingress.telephony import telnyx_provider, twilio_provider
from tests.ingress.telephony.telnyx_provider import PUBLIC, SECRET, Api
from tests.ingress.telephony.twilio_provider import TOKEN, verbs
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.base.errors import PopFull
from voicepipe.call_api import Grant
from voicepipe.config import Config
from voicepipe.config.directory_config import DirectoryRoute, DirectoryTelnyx, DirectoryTwilio
from voicepipe.config.phone_config import TelephonyConfig, TelnyxConfig, TwilioConfig
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.directory import Directory
from voicepipe.pop.pop import Pop

pytestmark = pytest.mark.e2e
PUBLIC_URL = "https://calls.example.com"
CALL = {"CallSid": "CA1", "From": "+1555", "To": "+4930123"}
OTHER: Any = {"call_control_id": "v3:other"}
INCOMING: Any = {"direction": "incoming", "to": "+4930123", "from": "+1555"}


@dataclass
class Site:
    """Two PoPs, the nearer one first, two directories, and the providers' side of it."""

    pops: list[Pop]
    directories: list[Served]
    telnyx: Api

    @property
    def directory(self) -> str:
        return self.directories[0].url

    @property
    def calls(self) -> list[int]:
        return [pop.calls for pop in self.pops]

    async def twilio(self, call: dict[str, str] = CALL, headers: dict[str, str] | None = None, at: int = 0) -> Any:
        """A webhook of Twilio's at a directory."""
        signed = twilio_provider.signed(f"{PUBLIC_URL}/twilio/voice", call) if headers is None else headers
        return await twilio_provider.post(f"{self.directories[at].url}/twilio/voice", call, signed)

    async def telnyx_says(self, event: str, at: int = 0, **payload: Any) -> int:
        """The same of Telnyx's."""
        return await telnyx_provider.post(self.directories[at].url.removeprefix("http://"), event, **payload)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    return providers(public_key(tmp_path), monkeypatch)


def providers(public: str, monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """PoPs in Frankfurt and in London that take calls from both providers."""
    monkeypatch.setenv("TEST_TWILIO", TOKEN)
    monkeypatch.setenv("TEST_TELNYX", SECRET)
    api = f"http://127.0.0.1:{free_port()}"
    return [
        msgspec.structs.replace(
            config,
            telephony=TelephonyConfig(public_url=config.fleet.url),
            twilio=TwilioConfig(auth_token_env="TEST_TWILIO"),
            telnyx=TelnyxConfig(public_key=PUBLIC, api_key_env="TEST_TELNYX", api_url=api),
        )
        for config in (settings("fra", public, FRANKFURT), settings("lhr", public, LONDON))
    ]


@asynccontextmanager
async def site(two: list[Config], *routes: DirectoryRoute) -> AsyncIterator[Site]:
    api, bus = Api(), MemoryBus()
    api.active.append(OTHER)
    url = two[0].telnyx.api_url
    tables: dict[str, Any] = {
        "telephony": TelephonyConfig(public_url=PUBLIC_URL),
        "twilio": DirectoryTwilio(auth_token_env="TEST_TWILIO"),
        "telnyx": DirectoryTelnyx(public_key=PUBLIC, api_key_env="TEST_TELNYX", api_url=url),
        "routes": routes,
    }
    async with AsyncExitStack() as stack:
        listening = await asyncio.start_server(api.serve, "127.0.0.1", int(url.rpartition(":")[2]))
        await stack.enter_async_context(listening)
        directory, pops = await stack.enter_async_context(fleet(*two, bus=bus))
        other = Directory(bus, SIGNER)
        hearing = asyncio.create_task(other.run())
        stack.callback(hearing.cancel)
        await until(lambda: len(other.pops()) == 2, 60)
        directories = [await stack.enter_async_context(served(one, bus, {}, **tables)) for one in (directory, other)]
        yield Site(pops, directories, api)


def full(site: Site, monkeypatch: pytest.MonkeyPatch, *pops: int) -> None:
    """These have no place left, which directories have not heard yet."""
    for pop in pops:
        monkeypatch.setattr(site.pops[pop], "admit", Mock(side_effect=PopFull("All places are taken.")))


def at(answer: Any) -> int:
    """The port of the PoP to which a call is streamed; what comes after it is asked there, too."""
    [connect] = verbs(answer)
    port = urlsplit(connect[0].get("url")).port
    assert urlsplit(connect.get("action")).port == port
    return port or 0


@asynccontextmanager
async def streamed(answer: Any, call: str = "CA1") -> AsyncIterator[twilio_provider.Stream]:
    """As TwiML has said."""
    [connect] = verbs(answer)
    async with twilio_provider.streaming(connect[0].get("url") or "", call_sid=call) as stream:
        await stream.start({one.get("name", ""): one.get("value", "") for one in connect[0]})
        yield stream


async def test_a_call_from_twilio_goes_to_the_nearest_pop(two: list[Config]) -> None:
    async with site(two) as here:
        answer = await here.twilio()
        assert at(answer) == two[0].http.port
        async with streamed(answer):
            await until(lambda: here.calls == [1, 0], 60)
        await until(lambda: here.calls == [0, 0], 60)


async def test_the_next_pop_is_asked_while_it_rings(two: list[Config], monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(two) as here:
        full(here, monkeypatch, 0)
        answer = await here.twilio()
        assert at(answer) == two[1].http.port
        async with streamed(answer):
            await until(lambda: here.calls == [0, 1], 60)
        full(here, monkeypatch, 1)
        [reject] = verbs(await here.twilio({**CALL, "CallSid": "CA2"}))
        assert (reject.tag, reject.get("reason")) == ("Reject", "busy")


async def test_a_number_of_nobody_is_rejected(two: list[Config]) -> None:
    async with site(two, DirectoryRoute(called="+1*"), DirectoryRoute(called="+2*", kind="telnyx")) as here:
        [reject] = verbs(await here.twilio())
        assert reject.get("reason") == "rejected"
        assert await here.telnyx_says("call.initiated", **INCOMING) == 200
        assert [body["cause"] for body in here.telnyx.did("reject")] == ["CALL_REJECTED"]


async def test_what_is_not_signed_places_nothing(two: list[Config]) -> None:
    """Nor does a signature for another address, be it a PoP's; nor, at a PoP, a directory's token for another kind."""
    async with site(two) as here:
        for headers in ({}, twilio_provider.signed(f"{two[0].fleet.url}/twilio/voice", CALL)):
            assert (await here.twilio(headers=headers)).status_code == 403
        assert await here.telnyx_says("call.initiated", age=900, **INCOMING) == 403
        granted = Grant(id="a", tenant="local", kind="websocket")
        [fra] = [seen for seen in here.directories[0].directory.pops() if seen.pop == "fra"]
        token = SIGNER.sign(granted, "fra", fra.report.epoch, fra.report.clock_s)
        headers = {"Authorization": f"Bearer {token}"}
        forged = await twilio_provider.post(f"{two[0].fleet.url}/twilio/voice", CALL, headers)
        assert forged.status_code == 401
        assert not here.directories[0].directory.placed


async def test_a_call_from_telnyx_is_answered_by_the_pop(two: list[Config]) -> None:
    """Which has Telnyx say all that follows to itself."""
    async with site(two) as here:
        assert await here.telnyx_says("call.initiated", **INCOMING) == 200
        [answer] = here.telnyx.did("answer")
        assert answer["webhook_url"] == f"{two[0].fleet.url}/telnyx/voice"
        state = answer["client_state"]
        assert await telnyx_provider.post(two[0].fleet.url.removeprefix("http://"), "call.answered",
                                          client_state=state, to="+4930123") == 200  # fmt: skip
        async with telnyx_provider.streaming(two[0].fleet.url.removeprefix("http://"), here.telnyx):
            await until(lambda: here.calls == [1, 0], 60)


async def test_a_webhook_that_still_comes_to_a_directory_reaches_the_pop(two: list[Config]) -> None:
    async with site(two) as here:
        assert await here.telnyx_says("call.initiated", **INCOMING) == 200
        [answer] = here.telnyx.did("answer")
        assert await here.telnyx_says("call.answered", at=1, client_state=answer["client_state"], to="+4930123") == 200
        assert len(here.telnyx.did("streaming_start")) == 1


async def test_telnyx_tells_twice_and_two_directories(two: list[Config], monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is answered once; it is rejected once where nobody takes it."""
    async with site(two) as here:
        for directory in (0, 0, 1):
            assert await here.telnyx_says("call.initiated", at=directory, **INCOMING) == 200
        assert len(here.telnyx.did("answer")) == 1
        full(here, monkeypatch, 0, 1)
        for directory in (1, 0):
            assert await here.telnyx_says("call.initiated", at=directory, **{**INCOMING, **OTHER}) == 200
        assert [body["cause"] for body in here.telnyx.did("reject")] == ["USER_BUSY"]


async def test_a_directory_that_dies_before_it_has_seen_to_a_call(two: list[Config]) -> None:
    """Telnyx asks the other one, which does it."""
    async with site(two) as here:
        with here.directories[0].directory.call_claims.seeing_to(telnyx_provider.CALL) as wanted:
            assert wanted
            assert await here.telnyx_says("call.initiated", at=0, **INCOMING) == 200
            assert not here.telnyx.did("answer"), "it is under way there"
            assert await here.telnyx_says("call.initiated", at=1, **INCOMING) == 200
            assert len(here.telnyx.did("answer")) == 1


async def test_an_answered_call_whose_pop_is_gone_is_hung_up(two: list[Config]) -> None:
    state = b64encode(b"voicepipe gone/host:8080 boot").decode()
    async with site(two) as here:
        assert await here.telnyx_says("call.answered", client_state=state, to="+4930123") == 200
        assert len(here.telnyx.hung_up) == 1


async def test_a_place_is_promised_until_its_stream_comes(two: list[Config], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.directory.fleet_view.PENDING_S", 600.0)  # However slow the machine is.
    async with site(two) as here:
        directory = here.directories[0].directory
        answer = await here.twilio()
        told = directory.pops()[0].report.seq
        await until(lambda: directory.pops()[0].report.seq > told + 1, 60)
        assert [seen.pending for seen in directory.pops()] == [1, 0]
        async with streamed(answer):
            await until(lambda: [(seen.pending, seen.condition.calls) for seen in directory.pops()] == [(0, 1), (0, 0)],
                        60)  # fmt: skip


async def test_a_pop_that_telnyx_does_not_obey(two: list[Config]) -> None:
    """The next one tries."""
    async with site(two) as here:
        here.telnyx.status["answer"] = 401, {}
        assert await here.telnyx_says("call.initiated", **INCOMING) == 200
        assert len(here.telnyx.did("answer")) == 2
        assert [body["cause"] for body in here.telnyx.did("reject")] == ["USER_BUSY"]


async def test_telnyx_tells_two_directories_at_the_same_time(two: list[Config]) -> None:
    """Three webhooks at each: however many PoPs order Telnyx to answer, it does so once, and one PoP has the call."""
    async with site(two) as here:
        told = [here.telnyx_says("call.initiated", at=at, **INCOMING) for at in (0, 1) * 3]
        assert await asyncio.gather(*told) == [200] * 6
        [answer] = here.telnyx.carried_out("answer")
        assert not here.telnyx.did("reject") and not here.telnyx.hung_up
        state: dict[str, Any] = {"client_state": answer["client_state"], "to": "+4930123"}
        pop = answer["webhook_url"].removeprefix("http://").partition("/")[0]
        again = [here.telnyx_says("call.answered", at=at, **state) for at in (0, 1)]
        again.append(telnyx_provider.post(pop, "call.answered", **state))
        assert await asyncio.gather(*again) == [200] * 3
        async with telnyx_provider.streaming(pop, here.telnyx):  # It was asked for once.
            await until(lambda: sum(here.calls) == 1, 60)
        await until(lambda: sum(here.calls) == 0, 60)


async def test_what_telnyx_tells_in_the_wrong_order(two: list[Config]) -> None:
    """That a call is over, before that it has come: Telnyx then says so of our answer, and nobody else is asked."""
    async with site(two) as here:
        ended = {"errors": [{"code": "90018", "title": "Call has already ended"}]}
        here.telnyx.status["answer"] = 422, ended
        for event in ("call.hangup", "call.initiated", "call.hangup", "call.initiated"):
            assert await here.telnyx_says(event, **INCOMING) == 200
        assert [action for action, _ in here.telnyx.commands] == ["answer"]
        assert here.calls == [0, 0]


async def test_what_somebody_else_signs_as_telnyx_orders_nothing(
    two: list[Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = b64encode(b"voicepipe fra/host:8080 boot").decode()
    async with site(two) as here:
        with monkeypatch.context() as forged:
            forged.setattr(telnyx_provider, "SIGNER", Ed25519PrivateKey.generate())
            for event in ("call.initiated", "call.answered", "call.hangup"):
                assert await here.telnyx_says(event, client_state=state, **INCOMING) == 403
        body, headers = telnyx_provider.webhook("call.hangup", {"call_control_id": telnyx_provider.CALL, **INCOMING})
        for changed in (body.replace(b"call.hangup", b"call.initiated"), body + b" "):
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.post(f"{here.directory}/telnyx/voice", content=changed, headers=headers)
            assert answer.status_code == 403
        assert not here.telnyx.commands and not here.directories[0].directory.placed


async def test_twilio_asks_again_and_at_two_directories_at_the_same_time(two: list[Config]) -> None:
    """It is answered each time; the one stream that it then opens is the call, and its token opens no other."""
    async with site(two) as here:
        answers = await asyncio.gather(*(here.twilio(at=at) for at in (0, 1) * 3))
        assert all(at(answer) in (two[0].http.port, two[1].http.port) for answer in answers)
        assert here.calls == [0, 0]
        async with streamed(answers[0]):
            await until(lambda: sum(here.calls) == 1, 60)
            async with streamed(answers[0]) as again:
                await again.closed.wait()
            assert sum(here.calls) == 1
        await until(lambda: sum(here.calls) == 0, 60)

"""What is refused of Telnyx: calls without a place or a route, what is not signed, streams without their token."""

import json
import re

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.telephony.telnyx_provider import call, post, streaming, telnyx
from tests.support.waiting import until
from voicepipe.base.errors import PopFull
from voicepipe.config.phone_config import RouteConfig


async def test_a_pop_that_is_full_is_busy_and_a_number_without_a_route_is_rejected() -> None:
    async with telnyx(RouteConfig(called="+33*")) as (pop, api, address):
        await post(address, "call.initiated", direction="incoming", to="+49")
        pop.refuse = PopFull("full")
        await post(address, "call.initiated", direction="incoming", to="+33")
        assert api.commands == [("reject", {"cause": "CALL_REJECTED"}), ("reject", {"cause": "USER_BUSY"})]


async def test_what_telnyx_has_not_signed(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (_, api, address):
        assert await post(address, "call.initiated", age=400, direction="incoming") == 403
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.post(f"http://{address}/telnyx/voice", content=b"{}")).status_code == 403
        assert not api.commands
    assert re.search(r"signed 4\d\d s ago", caplog.text)


async def test_those_who_go_on_asking_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (_, _, address), httpx.AsyncClient(trust_env=False) as client:
        for _ in range(200):
            assert (await client.post(f"http://{address}/telnyx/voice", content=b"{}")).status_code == 403
    told = [record for record in caplog.records if "telnyx" in record.getMessage()]
    assert 1 < len(told) < 150 and any("are refused in masses" in record.getMessage() for record in told)


async def test_a_token_is_for_one_stream_of_its_call() -> None:
    async with telnyx() as (pop, api, address):
        for headers in ({}, {"x-telnyx-streaming-auth-token": "guess"}):
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://{address}/telnyx/stream", additional_headers=headers, proxy=None)
            assert refused.value.response.status_code == 403
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.live)
            with pytest.raises(InvalidStatus):
                async with streaming(address, api):
                    raise AssertionError("a token was taken twice")
        api.commands.clear()
        await call(address)
        [asked] = api.did("streaming_start")
        headers = {"x-telnyx-streaming-auth-token": asked["stream_auth_token"]}
        async with connect(f"ws://{address}/telnyx/stream", additional_headers=headers, proxy=None) as socket:
            start = {"call_control_id": "v3:other", "media_format": {"encoding": "PCMU", "sample_rate": 8000}}
            await socket.send(json.dumps({"event": "start", "stream_id": "S", "start": start}))
            await socket.wait_closed()
            assert socket.close_code == 1008 and len(pop.calls) == 1


async def test_without_a_key_there_is_nothing() -> None:
    async with serving(FakePop()) as address:
        assert await post(address, "call.initiated", direction="incoming") in (404, 405)

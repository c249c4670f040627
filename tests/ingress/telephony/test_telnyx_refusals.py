"""What is refused of Telnyx: calls without a place or a route, what is not signed, streams without their token."""

import json
import re

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.ingress.telephony.telnyx_provider import call, post, streaming, telnyx
from tests.support.waiting import until


async def test_what_telnyx_has_not_signed(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (_, api, address):
        assert await post(address, "call.initiated", age=400, direction="incoming") == 403
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.post(f"http://{address}/telnyx/voice", content=b"{}")).status_code == 403
        assert not api.commands
    assert re.search(r"signed 4\d\d s ago", caplog.text)


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

"""Who is not let in at a provider's door."""

import httpx
import pytest

from tests.ingress.telephony.telnyx_provider import post, telnyx
from voicepipe.base.errors import PopFull
from voicepipe.config.phone_config import RouteConfig


async def test_a_pop_that_is_full_is_busy_and_a_number_without_a_route_is_rejected() -> None:
    async with telnyx(RouteConfig(called="+33*")) as (pop, api, address):
        await post(address, "call.initiated", direction="incoming", to="+49")
        pop.refuse = PopFull("full")
        await post(address, "call.initiated", direction="incoming", to="+33")
        assert api.commands == [("reject", {"cause": "CALL_REJECTED"}), ("reject", {"cause": "USER_BUSY"})]


async def test_those_who_go_on_asking_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (_, _, address), httpx.AsyncClient(trust_env=False) as client:
        for _ in range(200):
            assert (await client.post(f"http://{address}/telnyx/voice", content=b"{}")).status_code == 403
    told = [record for record in caplog.records if "telnyx" in record.getMessage()]
    assert 1 < len(told) < 150 and any("are refused in masses" in record.getMessage() for record in told)

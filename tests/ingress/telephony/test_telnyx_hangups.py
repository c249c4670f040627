"""A hang-up that Telnyx does not carry out is tried again: for a while, not too often, and not beyond the server."""

import asyncio
from itertools import pairwise
from typing import Any, cast

import pytest

from tests.ingress.telephony.telnyx_provider import CALL, call, post, streaming, telnyx
from tests.support import virtual_time
from tests.support.waiting import until
from voicepipe.ingress.telephony.telnyx_api import CommandFailed
from voicepipe.ingress.telephony.telnyx_hangups import LONGEST_S, MOST, WITHIN_S, HangUps


class Failing:
    """Telnyx's API, which fails so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.at: list[float] = []

    async def command(self, call_id: str, action: str) -> None:
        assert action == "hangup"
        self.at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        self.left -= 1
        if self.left >= 0:
            raise CommandFailed("hangup: Telnyx answers HTTP 500")


def attempts(api: Failing) -> list[float]:
    """Seconds of all that are made within an hour, since the first."""

    async def main() -> None:
        made = HangUps(cast(Any, api))
        await made.hang_up(CALL)
        await asyncio.sleep(3600)
        assert not made._again

    virtual_time.run(main())
    return [at - api.at[0] for at in api.at]


def test_it_is_tried_until_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    assert attempts(Failing(4)) == pytest.approx([0, 1, 3, 7, 15])
    assert caplog.text.count("is not hung up") == 1


def test_it_is_not_tried_for_ever_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    tried = attempts(Failing(10**6))
    pauses = [later - one for one, later in pairwise(tried)]
    assert max(pauses) == pytest.approx(LONGEST_S) and sorted(pauses) == pytest.approx(pauses)
    assert WITHIN_S - LONGEST_S < tried[-1] <= WITHIN_S + 1
    assert caplog.text.count("is not hung up") == 2


def test_only_so_many_calls_are_tried_again() -> None:
    async def main() -> None:
        made = HangUps(cast(Any, Failing(10**6)))
        for n in range(MOST + 10):
            await made.hang_up(f"v3:{n}")
            await made.hang_up(f"v3:{n}")
        assert len(made._again) == MOST
        await made.close()
        await made.hang_up("v3:late")
        assert not made._again

    virtual_time.run(main())


async def test_a_caller_is_not_left_in_silence_by_one_failure() -> None:
    async with telnyx() as (pop, api, address):
        api.status["hangup"] = 500, {}
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
        await until(lambda: api.did("hangup"))
        api.status.clear()
        await until(lambda: len(api.did("hangup")) == 2)


@pytest.mark.parametrize("ends", ["by itself", "with the server"])
async def test_nothing_is_tried_once_the_call_or_the_server_has_ended(
    ends: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with telnyx() as (pop, api, address):
        api.status["hangup"] = 500, {}
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
        await until(lambda: "it is tried again" in caplog.text)
        if ends == "by itself":
            await post(address, "call.hangup")
    assert (f"not hung up when the server ended: {CALL}" in caplog.text) == (ends == "with the server")

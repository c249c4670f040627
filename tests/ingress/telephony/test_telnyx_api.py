"""Commands to Telnyx that fail: what the log says, without the key, and what becomes of the caller."""

from typing import Any

import pytest

from tests.ingress.telephony.telnyx_provider import CALL, ENV, PUBLIC, SECRET, call, post, telnyx
from voicepipe.config.phone_config import TelnyxConfig
from voicepipe.ingress.telephony.telnyx_api import CommandFailed, TelnyxApi


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (401, {}, "does not accept the key in the environment variable TEST_TELNYX_KEY"),
        (422, {"errors": [{"code": "90018", "title": "Call has already ended"}]}, ""),
        (
            422,
            {"errors": [{"code": 90015, "title": "Invalid", "detail": "no stream_url"}]},
            "HTTP 422: Invalid no stream",
        ),
        (500, {"oh": "no"}, 'HTTP 500: {"oh": "no"}'),
    ],
)
async def test_what_telnyx_answers(status: int, answer: dict[str, Any], why: str) -> None:
    async with telnyx() as (pop, api, _):
        api.status["hangup"] = status, answer
        command = TelnyxApi(pop.config.telnyx, SECRET).command(CALL, "hangup")
        if not why:
            return await command
        with pytest.raises(CommandFailed) as caught:
            await command
        assert why in str(caught.value) and SECRET not in str(caught.value)


async def test_telnyx_cannot_be_reached(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (pop, api, address):
        api.status["streaming_start"] = 422, {"errors": [{"title": "Invalid", "detail": "stream_url"}]}
        await call(address)
        assert api.did("hangup"), "a caller who would hear nothing"
        await post(address, "streaming.failed", failure_reason="connection_failed")
        config = TelnyxConfig(public_key=PUBLIC, api_key_env=ENV, api_url="http://127.0.0.1:9")
        with pytest.raises(CommandFailed, match=r"http://127\.0\.0\.1:9 does not answer"):
            await TelnyxApi(config, SECRET).command(CALL, "answer")
    assert "streaming_start: Telnyx answers HTTP 422: Invalid stream_url" in caplog.text
    assert "cannot be streamed to this server: connection_failed" in caplog.text

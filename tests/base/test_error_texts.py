"""What callers may read of errors: never the texts that are meant for whoever runs the PoP."""

import inspect
import logging

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.ingress.fake_pop import FakePop
from tests.support.scenario import load, play
from tests.support.scripted import ScriptedLlm
from voicepipe.base import errors
from voicepipe.base.error_texts import shown, spoken
from voicepipe.ingress.access import AccessControl, refusal
from voicepipe.ingress.api_keys import ClientSecrets

SECRET = "http://10.0.0.7:8000/v1 does not take $MODEL_KEY"
INTERNAL = [errors.ConfigError, errors.EngineError, errors.EngineMissing, errors.EngineBusy, errors.EngineDead,
            errors.EngineStalled, errors.NoPort, errors.ProbeError, ValueError, OSError]  # fmt: skip


@pytest.mark.parametrize("kind", INTERNAL, ids=lambda kind: kind.__name__)
def test_what_is_meant_for_the_operator_stays_in_the_log(
    kind: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    said = shown(kind(SECRET), "reply resp_1")
    assert "10.0.0.7" not in said and "MODEL_KEY" not in said
    number = said.rpartition("error as ")[2].rstrip(".)")
    assert f"reply resp_1 failed (error {number}): {SECRET}" in caplog.text
    assert "10.0.0.7" not in spoken(kind(SECRET), "tool book") and number not in spoken(kind(SECRET), "tool book")


def test_what_is_meant_for_callers_is_told_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    for kind in (errors.PopFull, errors.ReplyActive, errors.TransferFailed, errors.ToolError):
        assert shown(kind("Try again."), "x") == spoken(kind("Try again."), "x") == "Try again."
    assert not caplog.records


def test_no_error_of_ours_is_without_an_answer() -> None:
    """A new class under the root of the tree is internal until somebody decides otherwise."""
    ours = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.VoicepipeError)]
    written = (errors.Refused, errors.CallError, errors.ToolError)
    for kind in ours:
        told = shown(kind(SECRET), "x") == SECRET
        assert told == (issubclass(kind, written) and kind is not errors.NoPort), kind


@pytest.mark.virtual_time
async def test_a_models_error_never_reaches_response_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def generate(self: ScriptedLlm, prompt: object):  # type: ignore[no-untyped-def]
        raise errors.EngineDead(SECRET)
        yield ""

    monkeypatch.setattr(ScriptedLlm, "generate", generate)
    recording = await play(load("one_turn"))
    failed = [line for line in recording.story if line.startswith("reply failed")]
    assert failed and "10.0.0.7" not in str(recording.story) and SECRET in caplog.text


def test_an_http_500_says_nothing_of_us_and_quotes_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(request: Request) -> Response:
        raise RuntimeError(SECRET)

    app = Starlette(
        routes=[Route("/v1/voices", fails)], exception_handlers=AccessControl(FakePop(), ClientSecrets()).answers()
    )
    answer = TestClient(app, raise_server_exceptions=False).get("/v1/voices")
    error = answer.json()["error"]
    assert answer.status_code == 500 and error["type"] == "server_error" and "10.0.0.7" not in answer.text
    number = error["message"].rpartition("error as ")[2].rstrip(".)")
    assert f"GET /v1/voices failed (error {number}): {SECRET}" in caplog.text


def test_a_refusal_for_want_of_ports_does_not_name_the_network(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    answer = refusal(errors.NoPort("No UDP port can be had on 10.0.0.7: set webrtc.first_port"))
    assert answer.status_code == 503 and b"10.0.0.7" not in answer.body and b"webrtc" not in answer.body

"""Signed webhooks, by the convention of standardwebhooks.com."""

import base64
from pathlib import Path

import msgspec
import pytest

from tests.records.test_records import secrets, settings  # noqa: F401
from voicepipe.agent import Hooks
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config
from voicepipe.pop.running import running
from voicepipe.records.signing import headers, key_in, lacks, secret


async def test_a_secret_that_cannot_sign_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOOK", "guess-me")
    hook = {"after_call": "https://example.com/", "secret_env": "HOOK"}
    with pytest.raises(ConfigError, match=r'tenants\[0\].hooks.secret_env: .* HOOK cannot sign: it must be "whsec_"'):
        tenants = [{"name": "acme", "key_env": "KEY_A", "hooks": hook}]
        tables = msgspec.to_builtins(settings(tmp_path)) | {"tenants": tenants}
        async with running(msgspec.convert(tables, Config)):
            pass
    async with running(settings(tmp_path, "https://example.com/")):
        assert "Agent front-desk: hooks.secret_env: the environment variable HOOK cannot sign" in caplog.text
    async with running(settings(tmp_path, "https://example.com/", records={"folder": ""})):
        assert "Agent front-desk names a hooks.after_call, and nothing is sent: set records.folder" in caplog.text


KEY = b"twenty-four random bytes"


def whsec(key: bytes) -> str:
    return f"whsec_{base64.b64encode(key).decode()}"


def test_a_secret_is_24_bytes_or_more_in_base64() -> None:
    assert secret(whsec(KEY)) == KEY and secret(whsec(bytes(64))) == bytes(64)


@pytest.mark.parametrize(
    "text",
    ["", "whsec_", whsec(KEY[1:]), whsec(KEY).removeprefix("whsec_"), f"{whsec(KEY)}!", "whsec_näher", "guess-me"],
)
def test_what_is_no_secret_is_told_with_how_to_make_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"openssl rand -base64 32"):
        secret(text)


def test_a_receivers_library_knows_who_signed() -> None:
    """The example of https://github.com/standard-webhooks/standard-webhooks: its secret, message and signature."""
    key = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = headers(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330.7, b'{"test": 2432232314}')
    assert signed == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_another_body_id_or_time_has_another_signature() -> None:
    tries = [("msg_1", 1.0, b"{}"), ("msg_2", 1.0, b"{}"), ("msg_1", 2.0, b"{}"), ("msg_1", 1.0, b"{ }")]
    assert len({headers(KEY, *each)["webhook-signature"] for each in tries}) == 4


def test_what_keeps_us_from_signing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = Hooks(after_call="https://example.com/", secret_env="HOOK")
    monkeypatch.setenv("HOOK", whsec(KEY))
    assert lacks(hooks) == ""
    monkeypatch.setenv("HOOK", "guess-me")
    assert lacks(hooks).startswith("hooks.secret_env: the environment variable HOOK cannot sign: ")
    monkeypatch.delenv("HOOK")
    assert lacks(hooks).startswith("hooks.secret_env: the environment variable HOOK is not set here, or empty: ")
    assert lacks(Hooks()) == "", "nobody is to be told"


def test_a_key_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "hook.key"
    hooks = Hooks(after_call="https://example.com/", secret_file=str(file))
    assert lacks(hooks).startswith(f"hooks.secret_file: there is no {file}: it must be ")
    file.write_text("guess-me")
    assert lacks(hooks).startswith(f"hooks.secret_file: {file} cannot sign: it must be ")
    file.write_text(f"{whsec(KEY)}\n")
    assert lacks(hooks) == "" and key_in(hooks.secret) == KEY

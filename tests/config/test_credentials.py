"""Keys and passwords come from the environment, and each belongs to one."""

import re
from pathlib import Path
from typing import Any

import pytest

from voicepipe import config
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, TenantConfig, credentials
from voicepipe.config.fleet_config import BusConfig
from voicepipe.config.pop_config import TracesConfig

A = TenantConfig(name="a", key_env="VOICEPIPE_TEST_A")

UNSET = "the environment variable VOICEPIPE_TEST_A is not set here, or empty"

B = TenantConfig(name="b", key_env="VOICEPIPE_TEST_B")


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEPIPE_TEST_A", "one\n")
    monkeypatch.setenv("VOICEPIPE_TEST_B", "two")
    assert credentials.keys_of((A, B)) == {"one": A, "two": B}
    assert credentials.keys_of(()) == {}


def test_a_key_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOICEPIPE_TEST_A", raising=False)
    with pytest.raises(ConfigError, match="the environment variable VOICEPIPE_TEST_A is not set here"):
        credentials.keys_of((A,))


def test_two_tenants_with_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEPIPE_TEST_A", "same")
    monkeypatch.setenv("VOICEPIPE_TEST_B", "same")
    with pytest.raises(ConfigError, match="a and b have the same key"):
        credentials.keys_of((A, B))


def test_the_operators_key_is_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    http = config.HttpConfig(operator_key_env="VOICEPIPE_TEST_O")
    monkeypatch.setenv("VOICEPIPE_TEST_A", "one")
    monkeypatch.delenv("VOICEPIPE_TEST_O", raising=False)
    assert credentials.operator_keys(config.HttpConfig(), credentials.keys_of((A,))) == ("", "")
    with pytest.raises(ConfigError, match="the environment variable VOICEPIPE_TEST_O is not set here"):
        credentials.operator_keys(http, credentials.keys_of((A,)))
    monkeypatch.setenv("VOICEPIPE_TEST_O", "one")
    with pytest.raises(ConfigError, match="give the operator one of its own"):
        credentials.operator_keys(http, credentials.keys_of((A,)))
    monkeypatch.setenv("VOICEPIPE_TEST_O", "three\n")
    assert credentials.operator_keys(http, credentials.keys_of((A,))).operator == "three"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("[openai]\napi_key_env = 'VOICEPIPE_TEST_A'", "openai.api_key_env"),  # llm = "auto" may use it
        ("[openai]\napi_key_env = 'VOICEPIPE_TEST_A'\n[engines]\nllm = 'openai'", "openai.api_key_env"),
        ("[openai]\napi_key_env = 'VOICEPIPE_TEST_A'\n[engines]\nllm = 'frontdesk'", ""),
        ("[bus]\nuser = 'a'\npassword_env = 'VOICEPIPE_TEST_A'", ""),
        ("[twilio]\nauth_token_env = 'VOICEPIPE_TEST_A'", "twilio.auth_token_env"),
        ("[[sip.users]]\nname = 'a'\npassword_env = 'VOICEPIPE_TEST_A'", "sip.users[0].password_env"),
    ],
)
def test_only_secrets_that_are_used_are_asked_for(
    write: Any, monkeypatch: pytest.MonkeyPatch, text: str, missing: str
) -> None:
    monkeypatch.delenv("VOICEPIPE_TEST_A", raising=False)
    settings = config.load(write(text))
    assert credentials.missing_secrets(settings) == ({UNSET: missing} if missing else {})
    if missing:
        with pytest.raises(
            ConfigError, match=f"^{re.escape(missing)}: the environment variable VOICEPIPE_TEST_A is not set here"
        ):
            credentials.check(settings)
    monkeypatch.setenv("VOICEPIPE_TEST_A", "s3cret")
    credentials.check(settings)


def test_a_bus_asks_for_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = BusConfig(servers=("nats://127.0.0.1:4222",), user="a", password_env="VOICEPIPE_TEST_A")
    monkeypatch.delenv("VOICEPIPE_TEST_A", raising=False)
    with pytest.raises(
        ConfigError, match="bus.password_env: the environment variable VOICEPIPE_TEST_A is not set here"
    ):
        credentials.check(Config(bus=bus))


def test_the_metrics_have_a_key_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    http = config.HttpConfig(metrics_key_env="VOICEPIPE_TEST_M")
    monkeypatch.setenv("VOICEPIPE_TEST_A", "one")
    assert credentials.operator_keys(config.HttpConfig(), credentials.keys_of((A,))).metrics == ""
    with pytest.raises(
        ConfigError, match=r"http\.metrics_key_env: the environment variable VOICEPIPE_TEST_M is not set here"
    ):
        credentials.operator_keys(http, ())
    monkeypatch.setenv("VOICEPIPE_TEST_M", "one")
    with pytest.raises(ConfigError, match="holds the key of a tenant"):
        credentials.check(Config(http=http, tenants=(A,)))
    monkeypatch.setenv("VOICEPIPE_TEST_A", "two")
    assert credentials.operator_keys(http, credentials.keys_of((A,))).metrics == "one"


def test_headers_for_traces_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Config(traces=TracesConfig(endpoint="https://h/otlp", headers_env="VOICEPIPE_TEST_H"))
    assert credentials.trace_headers(Config()) == {}
    monkeypatch.delenv("VOICEPIPE_TEST_H", raising=False)
    with pytest.raises(
        ConfigError, match=r"^traces\.headers_env: the environment variable VOICEPIPE_TEST_H is not set here"
    ):
        credentials.check(settings)
    monkeypatch.setenv("VOICEPIPE_TEST_H", "Authorization=Bearer%20a=b, team = voice")
    assert credentials.trace_headers(settings) == {"authorization": "Bearer a=b", "team": "voice"}
    for wrong in ("sesame", "=sesame", "a b=sesame", "a=", "a=sesame%0d%0ab:c", "a=s\u00e9same"):
        monkeypatch.setenv("VOICEPIPE_TEST_H", wrong)
        with pytest.raises(ConfigError, match="VOICEPIPE_TEST_H does not hold headers") as told:
            credentials.check(settings)
        assert "same" not in str(told.value)


EVERY_FILE = """
[http]
operator_key_file = "operator"
metrics_key_file = "metrics"
[webrtc]
turn_urls = ["turn:turn.example.com"]
turn_secret_file = "turn"
[[sip.users]]
name = "desk"
password_file = "desk"
[telephony]
public_url = "https://voice.example.com"
[twilio]
auth_token_file = "twilio"
[telnyx]
public_key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
api_key_file = "telnyx"
[fleet]
keys = ["bus"]
url = "https://fra1.example.com"
[bus]
servers = ["nats://127.0.0.1:4222"]
user = "fra1"
password_file = "bus"
[records]
folder = "records"
[traces]
endpoint = "http://127.0.0.1:4318"
headers_file = "traces"
[openai]
api_key_file = "openai"
[[tenants]]
name = "acme"
key_file = "acme"
[tenants.hooks]
after_call = "https://example.com/after-call"
secret_file = "hook"
"""


def test_every_secret_may_be_in_a_file(write: Any, tmp_path: Path) -> None:
    names = re.findall(r'_file = "(\w+)"', EVERY_FILE)
    for name in names:
        (tmp_path / name).write_text(f"team={name}\n")
    settings = config.load(write(EVERY_FILE))
    assert [secret.value() for secret in credentials.needed(settings)] == [
        f"team={name}" for name in ("acme", "hook", "desk", "operator", "metrics", "turn", "twilio", "telnyx", "openai",
                                    "bus", "traces")]  # fmt: skip
    assert len(names) == 11 and not credentials.missing_secrets(settings)
    credentials.check(settings)
    assert credentials.keys_of(settings.tenants) == {"team=acme": settings.tenants[0]}
    assert credentials.trace_headers(settings) == {"team": "traces"}
    (tmp_path / "acme").write_text("a new one\n")
    (tmp_path / "desk").write_text("another\n")
    assert credentials.keys_of(settings.tenants) == {"a new one": settings.tenants[0]}
    assert credentials.sip_passwords(settings.sip.users) == {"desk": "another"}
    (tmp_path / "acme").unlink()
    with pytest.raises(
        ConfigError, match=f"^tenants\\[0\\].key_file: there is no {tmp_path}/acme: write the key of ac"
    ):
        credentials.check(settings)


def test_a_directory_has_secrets_in_files(write: Any, tmp_path: Path) -> None:
    for name in ("acme", "operator", "desk"):
        (tmp_path / name).write_text(f"{name}'s")
    file = write(
        '[http]\noperator_key_file = "operator"\n[[tenants]]\nname = "acme"\nkey_file = "acme"\n'
        '[[sip.users]]\nname = "desk"\npassword_file = "desk"\n', "directory.toml"
    )  # fmt: skip
    settings = config.load_directory(file)
    keys = credentials.keys_of(settings.tenants)
    assert list(keys) == ["acme's"]
    assert credentials.operator_keys(settings.http, keys).operator == "operator's"
    assert credentials.sip_passwords(settings.sip.users) == {"desk": "desk's"}

"""Keys and passwords come from the environment, and each belongs to one."""

import re
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

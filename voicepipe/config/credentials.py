"""Keys and passwords, which are in no file: a configuration names the environment variable that holds each."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec

from voicepipe.base.environment import made_up, variable
from voicepipe.base.errors import ConfigError
from voicepipe.config.fleet_config import BusConfig
from voicepipe.config.phone_config import KnownUser, TelnyxAccount, TwilioAccount
from voicepipe.config.pop_config import Config, HttpConfig, KeyOwner, TenantConfig

Owner = TypeVar("Owner", bound=KeyOwner)
HEADER = r"[A-Za-z0-9!#$&'*+.^_`|~-]+"
"""The name of a header."""


def keyed(config: Config, name: str, key_env: str) -> Config:
    """`config` with one tenant; its key is generated for this process if the environment has none."""
    made_up(key_env)
    return msgspec.structs.replace(config, tenants=(TenantConfig(name=name, key_env=key_env),))


class EnvironmentSecret(NamedTuple):
    """A secret that a configuration takes from the environment."""

    key: str
    """The key of the configuration that names the variable."""
    variable: str
    """Empty: there is no such secret."""
    what: str

    def value(self) -> str:
        """The secret; empty where there is none. Raises ConfigError: its variable is not set, or empty."""
        if self.is_missing:
            raise ConfigError(f"{self.key}: set the environment variable {self.variable} to {self.what}")
        return variable(self.variable) if self.variable else ""

    @property
    def is_missing(self) -> bool:
        return bool(self.variable) and not variable(self.variable)


def needed(config: Config) -> Iterator[EnvironmentSecret]:
    """The secrets without which a PoP with this configuration does not start."""
    yield from (_key(index, tenant) for index, tenant in enumerate(config.tenants))
    signs = 'a key that signs records: "whsec_" and what `openssl rand -base64 32` prints'
    for index, tenant in enumerate(config.tenants):
        yield EnvironmentSecret(f"tenants[{index}].hooks.secret_env", tenant.hooks.secret_env, signs)
    yield from (_password(index, user) for index, user in enumerate(config.sip.users))
    yield _operator_key(config.http)
    yield _metrics_key(config.http)
    yield EnvironmentSecret("webrtc.turn_secret_env", config.webrtc.turn_secret_env, "coturn's static-auth-secret")
    yield twilio_token(config.twilio)
    yield telnyx_key(config.telnyx)
    if config.engines.llm in ("openai", "auto"):
        yield EnvironmentSecret("openai.api_key_env", config.openai.api_key_env, "the server's key")
    if config.bus.servers:
        yield bus_password(config.bus)
    yield EnvironmentSecret(
        "traces.headers_env", config.traces.headers_env, "headers, as authorization=Bearer%20KEY,team=voice"
    )


def _key(index: int, tenant: KeyOwner) -> EnvironmentSecret:
    return EnvironmentSecret(f"tenants[{index}].key_env", tenant.key_env, f"the key of {tenant.name}")


def _password(index: int, user: KnownUser) -> EnvironmentSecret:
    return EnvironmentSecret(f"sip.users[{index}].password_env", user.password_env, f"the password of {user.name}")


def _operator_key(http: HttpConfig) -> EnvironmentSecret:
    return EnvironmentSecret("http.operator_key_env", http.operator_key_env, "a key")


def _metrics_key(http: HttpConfig) -> EnvironmentSecret:
    return EnvironmentSecret("http.metrics_key_env", http.metrics_key_env, "a key")


def twilio_token(account: TwilioAccount) -> EnvironmentSecret:
    """The token with which Twilio signs; empty: it sends no calls."""
    return EnvironmentSecret("twilio.auth_token_env", account.auth_token_env, "the account's auth token")


def telnyx_key(account: TelnyxAccount) -> EnvironmentSecret:
    """The key of Telnyx's API; empty: it sends no calls."""
    return EnvironmentSecret("telnyx.api_key_env", account.api_key_env, "an API key of the account")


def bus_password(bus: BusConfig) -> EnvironmentSecret:
    """The password for NATS; empty: it needs none, or credentials."""
    return EnvironmentSecret("bus.password_env", bus.password_env, f"the password of {bus.user}")


def secret_of(config: Config, key: str) -> str:
    """The secret of a PoP that this key names, as "openai.api_key_env"; empty: none is needed. Raises ConfigError."""
    return next((secret.value() for secret in needed(config) if secret.key == key), "")


def check(config: Config) -> None:
    """Raises ConfigError: a secret that is needed is missing, or one is used for two purposes."""
    for secret in needed(config):
        secret.value()
    operator_keys(config.http, keys_of(config.tenants))
    trace_headers(config)


def missing_secrets(config: Config) -> dict[str, str]:
    """Environment variables that are needed and not set, or empty, with the first key that names them."""
    missing: dict[str, str] = {}
    for secret in needed(config):
        if secret.is_missing:
            missing.setdefault(secret.variable, secret.key)
    return missing


def keys_of(tenants: Iterable[Owner]) -> dict[str, Owner]:
    """Each tenant's key from the environment, with the tenant; empty: no keys are needed. Raises ConfigError."""
    found: dict[str, Owner] = {}
    for index, tenant in enumerate(tenants):
        key = _key(index, tenant).value()
        if key in found:
            raise ConfigError(f"tenants: {found[key].name} and {tenant.name} have the same key; give each its own")
        found[key] = tenant
    return found


class OperatorKeys(NamedTuple):
    """Keys that are no tenant's. Empty: there is none."""

    operator: str = ""
    """The key for the dashboard of all tenants, a directory's commands, and the metrics."""
    metrics: str = ""
    """The key for the metrics only."""


def operator_keys(http: HttpConfig, keys: Container[str]) -> OperatorKeys:
    """The operator keys of a PoP, or of a directory. `keys`: those of its tenants. Raises ConfigError."""
    for secret, whose in ((_operator_key(http), "operator"), (_metrics_key(http), "metrics")):
        if secret.value() in keys:
            raise ConfigError(
                f"{secret.key}: {secret.variable} holds the key of a tenant; give the {whose} one of its own"
            )
    found = OperatorKeys(_operator_key(http).value(), _metrics_key(http).value())
    if found.operator and found.operator == found.metrics:
        raise ConfigError(
            "http.metrics_key_env: its key is the operator's as well; give the metrics one of their own, since "
            "Prometheus keeps it in a file"
        )
    return found


def sip_passwords(users: Sequence[KnownUser]) -> dict[str, str]:
    """The password of each SIP user. Raises ConfigError."""
    return {user.name: _password(index, user).value() for index, user in enumerate(users)}


def trace_headers(config: Config) -> dict[str, str]:
    """Headers that authenticate us at the collector of traces. Raises ConfigError: they are missing, or not written as
    headers."""
    headers = {}
    for pair in filter(None, secret_of(config, "traces.headers_env").split(",")):
        name, _, value = (part.strip() for part in pair.partition("="))
        headers[name.lower()] = value = unquote(value)
        if not (re.fullmatch(HEADER, name) and value and value.isascii() and value.isprintable()):
            raise ConfigError(
                f"traces.headers_env: {config.traces.headers_env} does not hold headers; write them as "
                "authorization=Bearer%20KEY,team=voice"
            )
    return headers

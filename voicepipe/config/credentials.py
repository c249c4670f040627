"""Keys and passwords, which are in no configuration: it names the environment variable or the file that holds each.

Each function reads them anew, so that a secret that was replaced counts from the next call on."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec

from voicepipe.base.environment import made_up
from voicepipe.base.errors import ConfigError
from voicepipe.base.secret_source import SecretMissing, SecretSource
from voicepipe.config.fleet_config import BusConfig
from voicepipe.config.phone_config import KnownUser, TelnyxAccount, TwilioAccount
from voicepipe.config.pop_config import Config, HttpConfig, KeyOwner, TenantConfig

Owner = TypeVar("Owner", bound=KeyOwner)
HEADER = r"[A-Za-z0-9!#$&'*+.^_`|~-]+"
"""The name of a header."""
SecretName = Literal["openai.api_key", "webrtc.turn_secret", "traces.headers"]
"""The pair of keys that names a secret of which there is one."""


def keyed(config: Config, name: str, key_env: str) -> Config:
    """`config` with one tenant; its key is generated for this process if the environment has none."""
    made_up(key_env)
    return msgspec.structs.replace(config, tenants=(TenantConfig(name=name, key_env=key_env),))


class Secret(NamedTuple):
    """A secret of a configuration."""

    name: str
    """The pair of keys that names it, as "tenants[0].key"."""
    source: SecretSource
    what: str
    """What it is, for errors."""

    @property
    def key(self) -> str:
        """The key of the pair that names it."""
        return self.source.key_at(self.name)

    @property
    def problem(self) -> str:
        """Why it cannot be read; empty: it can, or there is none."""
        try:
            self.source.read()
        except SecretMissing as error:
            return str(error)
        return ""

    def value(self) -> str:
        """The secret; empty where there is none. Raises ConfigError: it cannot be read."""
        try:
            return self.source.read()
        except SecretMissing as error:
            raise ConfigError(f"{self.key}: {error}: {self.source.advice(self.what)}") from None


def needed(config: Config) -> Iterator[Secret]:
    """The secrets without which a PoP with this configuration does not start."""
    yield from (_key(index, tenant) for index, tenant in enumerate(config.tenants))
    signs = 'a key that signs records: "whsec_" and what `openssl rand -base64 32` prints'
    for index, tenant in enumerate(config.tenants):
        yield Secret(f"tenants[{index}].hooks.secret", tenant.hooks.secret, signs)
    yield from (_password(index, user) for index, user in enumerate(config.sip.users))
    yield _operator_key(config.http)
    yield _metrics_key(config.http)
    yield Secret("webrtc.turn_secret", config.webrtc.turn_secret, "coturn's static-auth-secret")
    yield twilio_token(config.twilio)
    yield telnyx_key(config.telnyx)
    if config.engines.llm in ("openai", "auto"):
        yield Secret("openai.api_key", config.openai.api_key, "the server's key")
    if config.bus.servers:
        yield bus_password(config.bus)
    yield Secret("traces.headers", config.traces.headers, "headers, as authorization=Bearer%20KEY,team=voice")


def _key(index: int, tenant: KeyOwner) -> Secret:
    return Secret(f"tenants[{index}].key", tenant.key, f"the key of {tenant.name}")


def _password(index: int, user: KnownUser) -> Secret:
    return Secret(f"sip.users[{index}].password", user.password, f"the password of {user.name}")


def _operator_key(http: HttpConfig) -> Secret:
    return Secret("http.operator_key", http.operator_key, "a key")


def _metrics_key(http: HttpConfig) -> Secret:
    return Secret("http.metrics_key", http.metrics_key, "a key")


def twilio_token(account: TwilioAccount) -> Secret:
    """The token with which Twilio signs; empty: it sends no calls."""
    return Secret("twilio.auth_token", account.auth_token, "the account's auth token")


def telnyx_key(account: TelnyxAccount) -> Secret:
    """The key of Telnyx's API; empty: it sends no calls."""
    return Secret("telnyx.api_key", account.api_key, "an API key of the account")


def bus_password(bus: BusConfig) -> Secret:
    """The password for NATS; empty: it needs none, or credentials."""
    return Secret("bus.password", bus.password, f"the password of {bus.user}")


def secret_of(config: Config, name: SecretName) -> str:
    """The secret of a PoP that this pair of keys names; empty: none is needed. Raises ConfigError."""
    return next((secret.value() for secret in needed(config) if secret.name == name), "")


def check(config: Config) -> None:
    """Raises ConfigError: a secret that is needed is missing, or one is used for two purposes."""
    for secret in needed(config):
        secret.value()
    operator_keys(config.http, keys_of(config.tenants))
    trace_headers(config)


def missing_secrets(config: Config) -> dict[str, str]:
    """Why secrets that are needed cannot be read, with the first key that names each."""
    missing: dict[str, str] = {}
    for secret in needed(config):
        if problem := secret.problem:
            missing.setdefault(problem, secret.key)
    return missing


def keys_of(tenants: Iterable[Owner]) -> dict[str, Owner]:
    """Each tenant's key as it is now, with the tenant; empty: no keys are needed. Raises ConfigError."""
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
                f"{secret.key}: {secret.source} holds the key of a tenant; give the {whose} one of its own"
            )
    found = OperatorKeys(_operator_key(http).value(), _metrics_key(http).value())
    if found.operator and found.operator == found.metrics:
        raise ConfigError(
            f"{_metrics_key(http).key}: its key is the operator's as well; give the metrics one of their own, since "
            "Prometheus keeps it in a file"
        )
    return found


def sip_passwords(users: Sequence[KnownUser]) -> dict[str, str]:
    """The password of each SIP user. Raises ConfigError."""
    return {user.name: _password(index, user).value() for index, user in enumerate(users)}


def trace_headers(config: Config) -> dict[str, str]:
    """Headers that authenticate us at the collector of traces. Raises ConfigError: they are missing, or not written as
    headers."""
    headers, source = {}, config.traces.headers
    for pair in filter(None, secret_of(config, "traces.headers").split(",")):
        name, _, value = (part.strip() for part in pair.partition("="))
        headers[name.lower()] = value = unquote(value)
        if not (re.fullmatch(HEADER, name) and value and value.isascii() and value.isprintable()):
            raise ConfigError(
                f"{source.key_at('traces.headers')}: {source} does not hold headers; write them as "
                "authorization=Bearer%20KEY,team=voice"
            )
    return headers

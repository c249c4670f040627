"""What the environment says: keys and passwords, which are in no file, and where things are kept. It is read here and
nowhere else."""

import os
import secrets
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from voicepipe.config import Config, HttpConfig, TenantConfig
from voicepipe.errors import ConfigError
from voicepipe.fleet_config import BusConfig

Owner = TypeVar("Owner", bound=TenantConfig)


def state_directory() -> Path:
    """Where a user's programs keep what outlives them (XDG); it need not exist yet."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "voicepipe"


def visible_gpus() -> str | None:
    """Which GPUs CUDA shows to this process, as whoever started it says; None: all."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def made_up(name: str) -> str:
    """The secret in the environment variable `name`; without one it is made up, also for programs started from here."""
    os.environ[name] = os.environ.get(name, "").strip() or secrets.token_urlsafe(12)
    return os.environ[name]


def settle_environment(variables: Mapping[str, str]) -> None:
    """For libraries that take settings in no other way; what is set already, stays."""
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def keyed(config: Config, name: str, key_env: str) -> Config:
    """`config` with one tenant; its key is made up for this process if the environment has none."""
    made_up(key_env)
    return msgspec.structs.replace(config, tenants=(TenantConfig(name=name, key_env=key_env),))


def keys(config: Config) -> dict[str, TenantConfig]:
    """Every key that opens this PoP and whose it is; empty: the PoP asks for none. Raises ConfigError."""
    return keys_of(config.tenants)


def keys_of(tenants: Iterable[Owner]) -> dict[str, Owner]:
    """Each tenant's key, from the environment, and whose it is. Raises ConfigError."""
    found: dict[str, Owner] = {}
    for tenant in tenants:
        key = os.environ.get(tenant.key_env, "").strip()
        if not key:
            raise ConfigError(f"tenants: {tenant.name} has no key; set the environment variable {tenant.key_env}")
        if key in found:
            raise ConfigError(f"tenants: {found[key].name} and {tenant.name} have the same key; give each its own")
        found[key] = tenant
    return found


def turn_secret(config: Config) -> str:
    """What the TURN server and we share; empty: there is no TURN server. Raises ConfigError."""
    return _secret(config.webrtc.turn_secret_env, "webrtc.turn_secret_env", "coturn's static-auth-secret")


def sip_passwords(config: Config) -> dict[str, str]:
    """Of each SIP user. Raises ConfigError."""
    return {
        user.name: _secret(user.password_env, f"sip.users: {user.name} has no password", "one")
        for user in config.sip.users
    }


def twilio_token(config: Config) -> str:
    """By which Twilio signs; empty: there are no calls from it. Raises ConfigError."""
    return _secret(config.twilio.auth_token_env, "twilio.auth_token_env", "the account's auth token")


def telnyx_key(config: Config) -> str:
    """By which Telnyx takes orders; empty: there are no calls from it. Raises ConfigError."""
    return _secret(config.telnyx.api_key_env, "telnyx.api_key_env", "an API key of the account")


def openai_key(config: Config) -> str:
    """By which the language model's server lets us in; empty: it asks for none. Raises ConfigError."""
    return _secret(config.openai.api_key_env, "openai.api_key_env", "the server's key")


def bus_password(bus: BusConfig) -> str:
    """By which NATS lets us in; empty: it asks for none, or for credentials. Raises ConfigError."""
    return _secret(bus.password_env, "bus.password_env", f"the password of {bus.user}")


def operator_key(config: Config) -> str:
    """The key that shows the dashboard everything; empty: there is none. Raises ConfigError."""
    return operator_key_of(config.http, keys(config))


def operator_key_of(http: HttpConfig, keys: Container[str]) -> str:
    """The same, of a server of any kind. Raises ConfigError."""
    name = http.operator_key_env
    key = _secret(name, "http.operator_key_env", "a key")
    if key in keys:
        raise ConfigError(f"http.operator_key_env: {name} holds the key of a tenant; give the operator one of its own")
    return key


def operator_key_named(name: str) -> str:
    """An operator's key, for a command; empty where the environment has none."""
    return os.environ.get(name, "").strip()


def check(config: Config) -> None:
    """Raises ConfigError: a secret that the configuration names is not here, or one is somebody else's as well."""
    operator_key(config)
    for secret in (sip_passwords, turn_secret, twilio_token, telnyx_key, openai_key):
        secret(config)
    bus_password(config.bus)


def missing_secrets(config: Config) -> dict[str, str]:
    """Of the environment variables that the configuration names, those that are not set or empty, and what names them
    first."""
    named = {f"tenants[{index}].key_env": tenant.key_env for index, tenant in enumerate(config.tenants)}
    named |= {f"sip.users[{index}].password_env": user.password_env for index, user in enumerate(config.sip.users)}
    named |= {
        "http.operator_key_env": config.http.operator_key_env,
        "webrtc.turn_secret_env": config.webrtc.turn_secret_env,
        "twilio.auth_token_env": config.twilio.auth_token_env,
        "telnyx.api_key_env": config.telnyx.api_key_env,
        "openai.api_key_env": config.openai.api_key_env,
        "bus.password_env": config.bus.password_env,
    }
    missing: dict[str, str] = {}
    for key, name in named.items():
        if name and not os.environ.get(name, "").strip():
            missing.setdefault(name, key)
    return missing


def _secret(name: str, said_by: str, what: str) -> str:
    """Of the environment; empty where no variable is named."""
    secret = os.environ.get(name, "").strip() if name else ""
    if name and not secret:
        raise ConfigError(f"{said_by}: set the environment variable {name} to {what}")
    return secret

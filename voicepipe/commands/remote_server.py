"""A running server, as `voicepipe pops`, `drain`, `push` and `records` ask it: its address, a key, whom to trust."""

from collections.abc import Sequence
from typing import Any

import httpx
import msgspec

from voicepipe.base import trust
from voicepipe.base.errors import ConfigError
from voicepipe.base.secret_source import SecretMissing, SecretSource


class RemoteServer(msgspec.Struct, frozen=True, kw_only=True):
    """A running server of one of these kinds; `option` is the one that gives its address."""

    url: str
    key: SecretSource
    """Where its key is. A variable that is not set means that there is none."""
    ca: str = ""
    """Path of the certificates (PEM) of authorities that are trusted besides the system's; empty: none."""
    kinds: Sequence[str] = ("directory",)
    option: str = "--directory"
    within_s: float = 10.0

    def asked(self, method: str, path: str, body: object = None) -> Any:
        """The answer, as a JSON object. Raises ConfigError: there is none, or the server refuses."""
        key = self._key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            answer = httpx.request(method, f"{self.url.rstrip('/')}{path}", headers=headers, json=body,
                                   timeout=self.within_s, verify=trust.for_http(self.ca, "--ca"))  # fmt: skip
            said = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            if why := trust.refusal(error, "--ca FILE"):
                raise ConfigError(f"{self.url}: {why}") from None
            raise ConfigError(
                f"{self.url} does not answer as a {self.kinds[0]} does ({error}): is {self.option} its address?"
            ) from None
        if answer.status_code < 400 and isinstance(said, dict):
            return said
        try:
            message = str(said["error"]["message"])
        except (KeyError, TypeError):
            message = f"this is no {' and no '.join(self.kinds)}: give {self.option} its address"
        where = f" (here: {self.key})" if answer.status_code == 401 else ""
        raise ConfigError(f"{self.url}: {message}{where}")

    def _key(self) -> str:
        try:
            return self.key.read()
        except SecretMissing as error:
            if self.key.file:
                raise ConfigError(f"--key-file: {error}") from None
            return ""

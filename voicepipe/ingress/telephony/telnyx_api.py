"""Commands to Telnyx about one call: https://developers.telnyx.com/api-reference/call-commands/answer-call."""

import httpx
import msgspec

from voicepipe.errors import VoicepipeError
from voicepipe.phone_config import TelnyxConfig

COMMAND_S = 5.0
ENDED = "90018"
"""Telnyx's code for commands about a call that has already ended."""


class CommandFailed(VoicepipeError):
    """Telnyx has not done what it was told; the text says why."""


class _Problem(msgspec.Struct):
    code: str | int = ""
    title: str | None = None
    detail: str | None = None


class _Problems(msgspec.Struct):
    errors: list[_Problem] = []


class TelnyxApi:
    """`key`: an API key of the account. Makes no connection before there is a command."""

    def __init__(self, config: TelnyxConfig, key: str) -> None:
        self._config = config
        # A connection for each command: there are but a few a call, none while anybody waits for an answer, and so
        # there is nothing to close in the end.
        self._client = httpx.AsyncClient(
            base_url=config.api_url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=COMMAND_S,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def command(self, call_id: str, action: str, **fields: object) -> None:
        """Raises CommandFailed."""
        path = f"/v2/calls/{call_id}/actions/{action}"
        try:
            answer = await self._client.post(path, json=fields)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = str(error) or type(error).__name__
            raise CommandFailed(f"{action}: {self._config.api_url} does not answer ({said})") from error
        if answer.status_code in (401, 403):
            raise CommandFailed(f"{action}: Telnyx does not accept the key in ${self._config.api_key_env}")
        if answer.is_success:
            return
        problems = _problems(answer.content)
        if all(str(problem.code) != ENDED for problem in problems):
            told = [" ".join(filter(None, (problem.title, problem.detail))) for problem in problems]
            said = "; ".join(filter(None, told)) or answer.text[:200]
            raise CommandFailed(f"{action}: Telnyx answers HTTP {answer.status_code}: {said}")


def _problems(body: bytes) -> list[_Problem]:
    try:
        return msgspec.json.decode(body, type=_Problems).errors
    except (msgspec.DecodeError, UnicodeError):
        return []

"""Commands to Telnyx about one call, and the list of calls: https://developers.telnyx.com/api-reference/call-commands."""

from typing import Any

import httpx
import msgspec

from voicepipe.errors import VoicepipeError
from voicepipe.foreign_json import decode
from voicepipe.ingress.telephony.telnyx_boot import ActiveCall
from voicepipe.phone_config import TelnyxConfig

COMMAND_S = 5.0
ENDED = "90018"
"""Telnyx's code for commands about a call that has already ended."""


PAGES = 200
"""Of a list of calls, at most."""


class CommandFailed(VoicepipeError):
    """Telnyx has not done what it was told; the text says why."""


class _Problem(msgspec.Struct):
    code: str | int = ""
    title: str | None = None
    detail: str | None = None


class _Problems(msgspec.Struct):
    errors: list[_Problem] = []


class _Cursors(msgspec.Struct):
    after: str | None = None


class _Meta(msgspec.Struct):
    cursors: _Cursors | None = None


class _Page(msgspec.Struct):
    data: list[ActiveCall] = []
    meta: _Meta | None = None


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
        await self._asked("POST", f"/v2/calls/{call_id}/actions/{action}", action, json=fields)

    async def active_calls(self, connection_id: str) -> list[ActiveCall]:
        """Of a Call Control application. Raises CommandFailed."""
        path, found, after = f"/v2/connections/{connection_id}/active_calls", list[ActiveCall](), ""
        for _ in range(PAGES):
            body = await self._asked("GET", path, "active_calls", params={"page[after]": after} if after else {})
            try:
                page = decode(body, _Page)
            except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
                raise CommandFailed(f"active_calls: Telnyx's list cannot be read ({error})") from error
            found += page.data
            said = page.meta.cursors.after if page.meta and page.meta.cursors else None
            if not page.data or not said or said == after:
                break
            after = said
        return found

    async def _asked(self, method: str, path: str, what: str, **more: Any) -> bytes:
        """The answer's body; nothing if the call has ended. Raises CommandFailed."""
        try:
            answer = await self._client.request(method, path, **more)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = str(error) or type(error).__name__
            raise CommandFailed(f"{what}: {self._config.api_url} does not answer ({said})") from error
        if answer.status_code in (401, 403):
            raise CommandFailed(f"{what}: Telnyx does not accept the key in ${self._config.api_key_env}")
        if answer.is_success:
            return answer.content
        problems = _problems(answer.content)
        if all(str(problem.code) != ENDED for problem in problems):
            told = [" ".join(filter(None, (problem.title, problem.detail))) for problem in problems]
            said = "; ".join(filter(None, told)) or answer.text[:200]
            raise CommandFailed(f"{what}: Telnyx answers HTTP {answer.status_code}: {said}")
        return b""


def _problems(body: bytes) -> list[_Problem]:
    try:
        return decode(body, _Problems).errors
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return []

"""Telnyx's API: what its webhooks say, commands about one call, and the list of calls:
https://developers.telnyx.com/api-reference/call-commands.

An answer is read as any server's (`base/web_answer.py`): what we asked for may be answered by another, and without
end.
"""

import asyncio
from base64 import b64decode
from typing import Any

import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from voicepipe.base.errors import VoicepipeError
from voicepipe.base.foreign_json import decode
from voicepipe.base.web_answer import PLAIN, whole
from voicepipe.config.phone_config import TelnyxAccount

SILENT_S, COMMAND_S = 5.0, 10.0
"""Seconds of silence from Telnyx, while we connect or wait for the answer; and seconds that a whole command may
take."""
LIST_BYTES, ERROR_BYTES = 512_000, 16_000
"""Bytes of one page of a list, which has 250 calls at most, of some 500 bytes; and bytes of an error."""
SHOWN = 300
"""Characters of an error that the log gets."""
ENDED = "90018"
"""Telnyx's code for commands about a call that has already ended."""
PAGES, MOST_CALLS = 200, 50_000
"""Limits of a list of calls; what comes after the page with the last of them is not asked for."""
VOICE = "/telnyx/voice"
"""The path of a Call Control application's webhook."""
CAUSES = {"busy": "USER_BUSY", "rejected": "CALL_REJECTED"}
"""Telnyx's names for the reasons why a call is not answered."""


class CommandFailed(VoicepipeError):
    """Telnyx has not carried out a command; the text says why."""


class TelnyxProblem(msgspec.Struct):
    """One error in an answer of Telnyx's."""

    code: str | int = ""
    title: str | None = None
    detail: str | None = None


class ActiveCall(msgspec.Struct, frozen=True):
    """An active call as Telnyx lists it."""

    call_control_id: str = ""
    call_session_id: str = ""
    client_state: str | None = None


class _Problems(msgspec.Struct):
    errors: list[TelnyxProblem] = []


class _Cursors(msgspec.Struct):
    after: str | None = None


class _Meta(msgspec.Struct):
    cursors: _Cursors | None = None


class _Page(msgspec.Struct):
    data: list[ActiveCall] = []
    meta: _Meta | None = None


class TelnyxHeader(msgspec.Struct, frozen=True):
    """A header of a SIP call."""

    name: str = ""
    value: str = ""


class TelnyxPayload(msgspec.Struct, frozen=True):
    """The data of a webhook's event about a call."""

    call_control_id: str = ""
    connection_id: str | int | None = None
    direction: str | None = None
    caller: str | None = msgspec.field(name="from", default=None)
    called: str | None = msgspec.field(name="to", default=None)
    client_state: str | None = None
    hangup_cause: str | None = None
    failure_reason: str | None = None
    custom_headers: list[TelnyxHeader] | None = None
    """Headers of a SIP call."""

    @property
    def sip_headers(self) -> dict[str, str]:
        """Its X- headers."""
        return {one.name: one.value for one in self.custom_headers or () if one.name.lower().startswith("x-")}


class _Data(msgspec.Struct, frozen=True):
    event_type: str
    payload: TelnyxPayload


class TelnyxWebhook(msgspec.Struct, frozen=True):
    """A webhook of Telnyx's."""

    data: _Data


def public_key(account: TelnyxAccount) -> Ed25519PublicKey:
    """The key by which the account's webhooks are checked."""
    return Ed25519PublicKey.from_public_bytes(b64decode(account.public_key))


class TelnyxApi:
    """A client of Telnyx's HTTP API. `key`: an API key of the account. Connects at the first command."""

    def __init__(self, config: TelnyxAccount, key: str) -> None:
        self._config = config
        # A connection for each command: there are but a few a call, none while anybody waits for an answer, and so
        # there is nothing to close in the end.
        self._client = httpx.AsyncClient(
            base_url=config.api_url,
            headers={**PLAIN, "Authorization": f"Bearer {key}"},
            timeout=SILENT_S,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def authorize(self, key: str) -> None:
        """Use another API key from now on."""
        self._client.headers["Authorization"] = f"Bearer {key}"

    async def command(self, call_id: str, action: str, **fields: object) -> None:
        """Send a command about one call. Raises CommandFailed."""
        await self._asked("POST", f"/v2/calls/{call_id}/actions/{action}", action, json=fields)

    async def active_calls(self, connection_id: str) -> list[ActiveCall]:
        """The active calls of a Call Control application. Raises CommandFailed."""
        path, found, after = f"/v2/connections/{connection_id}/active_calls", list[ActiveCall](), ""
        for _ in range(PAGES):
            query = {"page[after]": after} if after else {}
            page = _page(await self._asked("GET", path, "active_calls", LIST_BYTES + 1, params=query))
            found += page.data
            said = page.meta.cursors.after if page.meta and page.meta.cursors else None
            if not page.data or not said or said == after or len(found) >= MOST_CALLS:
                break
            after = said
        return found

    async def _asked(self, method: str, path: str, what: str, most: int = 0, **more: Any) -> bytes:
        """The answer to a request, `most` bytes at most; empty if the call has ended. Raises CommandFailed."""
        url = self._config.api_url
        try:
            async with asyncio.timeout(COMMAND_S), self._client.stream(method, path, **more) as answer:
                if not answer.is_success:
                    return await self._refused(answer, what)
                # What is said of a command that is done is not read: nothing in it could undo it.
                return await whole(answer, most) if most else b""
        except TimeoutError:
            raise CommandFailed(f"{what}: {url} does not answer (within {COMMAND_S:g} s)") from None
        except httpx.DecodingError as error:
            raise CommandFailed(f"{what}: Telnyx's list cannot be read: {error}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = str(error) or type(error).__name__
            raise CommandFailed(f"{what}: {url} does not answer ({said})") from error

    async def _refused(self, answer: httpx.Response, what: str) -> bytes:
        """Handle an error answer: returns if the call has ended, and otherwise raises CommandFailed."""
        if answer.status_code in (401, 403):
            raise CommandFailed(f"{what}: Telnyx does not accept the key in {self._config.api_key}")
        try:
            body = await whole(answer, ERROR_BYTES)
        except httpx.HTTPError as error:  # It broke off, or is compressed: the status is known all the same.
            body = (str(error) or type(error).__name__).encode()
        found = problems(body)
        if any(str(problem.code) == ENDED for problem in found):
            return b""
        raise CommandFailed(f"{what}: Telnyx answers HTTP {answer.status_code}: {described(found, body)}")


def _page(body: bytes) -> _Page:
    """A page of a list. Raises CommandFailed."""
    if len(body) > LIST_BYTES:
        raise CommandFailed(f"active_calls: Telnyx's list has more than {LIST_BYTES} bytes a page")
    try:
        return decode(body, _Page)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise CommandFailed(f"active_calls: Telnyx's list cannot be read ({error})") from error


def problems(body: bytes) -> list[TelnyxProblem]:
    """The errors in an answer in JSON."""
    try:
        return decode(body, _Problems).errors
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return []


def described(found: list[TelnyxProblem], body: bytes) -> str:
    """The errors of an answer on one line; the answer as it is where it names none."""
    named = [" ".join(filter(None, (problem.title, problem.detail))) for problem in found]
    said = "; ".join(filter(None, named)) or body.decode(errors="replace")
    return " ".join(said.split())[:SHOWN]

"""Telnyx's side of its callers in the rig: the API by which PoPs and directories say what becomes of each call."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from tests.ingress.telephony.telnyx_provider import DONE, said

ENDED = {"errors": [{"code": "90018", "title": "Call has already ended"}]}
UNKNOWN = {"errors": [{"code": "10005", "title": "Resource not found"}]}

Command = tuple[str, dict[str, Any]]
"""An action, and what is said of it."""


@dataclass
class Line:
    """One call, as Telnyx knows it. `commands` are to be carried out; a command that is told twice is there once."""

    commands: asyncio.Queue[Command] = field(default_factory=asyncio.Queue)
    client_state: str = ""
    """Which the call's webhooks repeat."""
    over: bool = False
    told: set[str] = field(default_factory=set)
    """Ids of commands that have come."""


class TelnyxSide:
    """The API of one account."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, path, _ = head.split(" ", 2)
        if method == "GET":  # /v2/connections/ID/active_calls
            return await said(writer, 200, {"data": self._active()})
        size = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
        body = json.loads(await reader.readexactly(size))
        *_, call_id, _, action = path.split("/")  # /v2/calls/ID/actions/ACTION
        await said(writer, *self._commanded(self.lines.get(call_id), action, body))

    def _active(self) -> list[dict[str, str]]:
        return [{"call_control_id": call_id, "call_session_id": call_id, "client_state": line.client_state}
                for call_id, line in self.lines.items() if line.client_state and not line.over]  # fmt: skip

    def _commanded(self, line: Line | None, action: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if line is None:
            return 404, UNKNOWN
        if line.over:
            return 422, ENDED
        command_id = body.get("command_id", "")
        if not command_id or command_id not in line.told:
            line.told.add(command_id)
            line.client_state = body.get("client_state", line.client_state)
            line.commands.put_nowait((action, body))
        return 200, DONE

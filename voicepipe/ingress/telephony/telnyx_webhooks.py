"""What Telnyx's webhooks say, at a PoP and at a directory in front of it."""

import msgspec

VOICE = "/telnyx/voice"
"""Where a Call Control application's webhook is."""
CAUSES = {"busy": "USER_BUSY", "rejected": "CALL_REJECTED"}
"""Of a call that is not answered, as Telnyx names them."""


class Payload(msgspec.Struct, frozen=True):
    """What a webhook says about a call."""

    call_control_id: str = ""
    connection_id: str | int | None = None
    direction: str | None = None
    caller: str | None = msgspec.field(name="from", default=None)
    called: str | None = msgspec.field(name="to", default=None)
    client_state: str | None = None
    hangup_cause: str | None = None
    failure_reason: str | None = None


class _Data(msgspec.Struct, frozen=True):
    event_type: str
    payload: Payload


class Webhook(msgspec.Struct, frozen=True):
    """All of it."""

    data: _Data

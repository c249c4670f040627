"""A call that rings while its agent's hook is asked: it is not known yet who answers it, and how."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from voicepipe.call_api import CallSlot
from voicepipe.ingress.sip.dialog import Dialog
from voicepipe.ingress.sip.sip_media import SipMedia
from voicepipe.ingress.sip.stack import IncomingRequest


class OpenedInvite(NamedTuple):
    """What the call for an INVITE needs, and our SDP for it."""

    dialog: Dialog
    media: SipMedia
    slot: CallSlot
    sdp: str
    doubtful: bool
    """Its sender has left the call unacknowledged that had this slot before, so this one may be forged as well."""


class RingingCall:
    """A call with a slot, before it is known who answers it. Its caller owes us nothing yet, so it gives way to another
    call only if it is doubtful; then `on_turned_away` is called. `resources`: its own, with the slot and the sound's
    port. Implements `unacknowledged.UnacknowledgedCall`."""

    awaits_ack = True

    def __init__(
        self, invite: IncomingRequest, opened: OpenedInvite, resources: ExitStack, on_turned_away: Callable[[], object]
    ) -> None:
        self.opened = opened
        self.resources = resources
        self._invite = invite
        self._on_turned_away = on_turned_away

    @property
    def slot(self) -> CallSlot:
        return self.opened.slot

    def ring(self) -> None:
        """Send 180: the caller hears that it rings."""
        dialog = self.opened.dialog
        self._invite.respond(180, "Ringing", (("Contact", dialog.contact),), tag=dialog.id.ours)

    def give_way(self) -> None:
        """End the call, to give its slot to another caller at once."""
        try:
            self._on_turned_away()
            self._invite.respond(503, "Service Unavailable")
        finally:
            self._invite.cancelled()
            self.resources.close()

"""The whole contract between an ingress and a call. Nothing behind a Line knows which kind it is."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from voicepipe.audio import Block, Pcm

Pump = Callable[[], float | None]
"""Sends what is due. Returns the seconds until more is; None: nothing waits to be sent."""


NO_TRANSFER = "this caller cannot be transferred: only phone calls can"
TAKES_NO_KEYS = "Keys are sent to telephones, and this caller has none."
PAUSES = {"w": 0.5, "W": 1.0}
"""Pauses among keys that are sent, in seconds; Twilio and Telnyx write them so."""
OnKeys = Callable[[str], None]
"""Called with keys that have been sent."""


class NetworkQuality(msgspec.Struct, frozen=True, kw_only=True):
    """How good the network to a caller has been since the call began. None: the line does not know."""

    loss_percent: float | None = None
    """Share of the caller's packets that did not come."""
    jitter_ms: float | None = None
    """Jitter of the arrival of the caller's packets."""
    rtt_ms: float | None = None
    """A round trip: by the caller's last report, or as the system has measured it for TCP."""


HIDDEN = NetworkQuality()
"""The quality of a TCP connection: TCP repeats what is lost, and reports nothing."""


class SoundListener(Protocol):
    """A listener to a caller's sound: a call. Implemented by `Hearing`."""

    def hear(self, block: Block) -> None:
        """Take 20 ms of the caller's sound."""


class Line(Protocol):
    """A caller's audio, both ways, whatever it comes by: WebSocket, WebRTC, SIP or a telephony provider."""

    kind: str
    """"websocket", "webrtc", "sip", "twilio", "telnyx": for records only."""

    out_rate: int
    """Sample rate in Hz that `send` takes."""

    lead_ms: int
    """How far ahead of real time playout may send: next to nothing where it paces packets, 200 on WebSockets."""

    setup_ms: int
    """How long the far end may take to say how it wants its session, before it is greeted: 0 for phones."""

    transfers: bool
    """The network behind this line can send its caller elsewhere: `transfer`."""

    @property
    def lacks_keys(self) -> str:
        """Why the far end can be sent no keys now; empty: it can be sent some."""

    @property
    def takes_sound(self) -> bool:
        """Whether sound may be sent now: not while a telephone has the call on hold. What is to be said waits."""

    async def listen(self, listener: SoundListener) -> None:
        """Have `listener` hear the caller's sound from the answer on, 20 ms at a time, without gaps, as it comes in.
        Returns when the caller is gone; raises what `listener.hear` raised."""

    async def pace(self, pump: Pump, wake: asyncio.Event) -> None:
        """Call `pump` when packets may be due, until cancelled. `wake` is set when there is more to send."""

    def send(self, pcm: Pcm) -> None:
        """Hand audio to the caller: int16[n] at `out_rate`. Returns at once; playout does the pacing."""

    def clear(self) -> int:
        """Throw away what was sent and not yet played, where the far end can do that. Returns those samples: from then
        on they count neither as sent nor as played."""

    def played(self) -> int:
        """Samples at `out_rate` that the caller has heard since the answer."""

    def network(self) -> NetworkQuality:
        """The quality of the network to the caller."""

    @property
    def caller_network(self) -> str:
        """The network from which `network().rtt_ms` is measured, as directories name it: "198.51.100.0/24", or the
        provider's name. Empty: nothing is to be learned from it."""

    async def transfer(self, target: str) -> None:
        """Send the caller to `target`, a phone number or an address of the line's network. Returns once somebody there
        has taken the call, which is then to be hung up here. Raises TransferFailed: the caller is still ours."""

    def send_keys(self, keys: str, on_sent: OnKeys = lambda keys: None) -> "asyncio.Future[None]":
        """Send keys ("0" to "9", "*", "#", "A" to "D") to the far end one after another, with the `PAUSES` among them,
        after those that were asked for before. Returns at once. The future is done once all have been sent, or raises
        KeysFailed; if it is cancelled, the rest is not sent. `on_sent` gets what has been sent, piece by piece. Raises
        KeysFailed: none will be sent."""

    async def hang_up(self) -> None:
        """End the call from our side. Safe to call twice."""

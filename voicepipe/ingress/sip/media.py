"""One phone call's media: what offers and answers settle, on a socket, an RTP stream and a line."""

from collections.abc import Awaitable, Callable

from voicepipe.errors import TransferFailed
from voicepipe.ingress.realtime.errors import NO_KEYS, WireError
from voicepipe.ingress.rtp_line import RtpLine
from voicepipe.line import NO_TRANSFER
from voicepipe.phone_config import SipConfig
from voicepipe.rtp import sip_sdp
from voicepipe.rtp.codec import CODECS, PCMU
from voicepipe.rtp.sdes import Crypto, Srtp, offered
from voicepipe.rtp.sdp_text import SdpError
from voicepipe.rtp.session import Statistics
from voicepipe.rtp.udp import UdpMedia

SDP = "application/sdp"


class SipLine(RtpLine):
    """The `Line` of a phone call."""

    kind = "sip"
    setup_ms = 0
    transfers = True

    refer: Callable[[str], Awaitable[None]] | None = None
    """How its caller is sent elsewhere."""

    async def transfer(self, target: str) -> None:
        """As `Line.transfer`."""
        if self.refer is None:
            raise TransferFailed(NO_TRANSFER)
        await self.refer(target)

    def send_keys(self, digits: str) -> None:
        """As `RealtimeLine.send_keys`, by RFC 4733."""
        try:
            self.media.press(digits)
        except ValueError as error:
            raise WireError(NO_KEYS, str(error)) from None


class SipMedia:
    """`local`: our address as the caller reaches it; `host`: the one to listen on; `signalled`: where the signalling
    came from. `line` is there once it is open."""

    line: SipLine

    def __init__(self, config: SipConfig, local: str, host: str, signalled: str) -> None:
        self._config = config
        self._local = local
        self._signalled = signalled
        self._udp = UdpMedia(host, (config.first_port, config.last_port))
        self._held = False
        self._srtp: Srtp | None = None
        self._offered: tuple[Crypto, ...] = ()
        """Our keys in an offer that is not answered yet."""

    def open(self, offer: str) -> str:
        """Get ports. Our answer to the INVITE's offer, or ours if it made none. Raises SdpError, NoPort."""
        said = self._read(offer) if offer else None
        self._end = sip_sdp.Local(self._local, self._udp.open())
        first = (said.codec, said.payload_type) if said else (PCMU, 0)
        self.line = SipLine(*first, self._udp)
        self._udp.on_media = self.line.media.datagram
        return self._answered(said) if said else self.offer()

    def close(self) -> None:
        """Let go of the ports. Safe to call twice."""
        if hasattr(self, "line"):
            self.line.media.close()
        self._udp.close()

    def answer(self, offer: str) -> str:
        """Our answer to another offer. Raises SdpError: all stays as it is."""
        return self._answered(self._read(offer))

    def offer(self) -> str:
        """Ours, where a request makes none."""
        self._offered = offered() if self._srtp or self._config.srtp == "required" else ()
        wanted = self._config.codecs
        codecs = sorted(CODECS, key=lambda one: wanted.index(one.name) if one.name in wanted else len(wanted))
        return sip_sdp.offer(self._end, codecs, self._offered)

    def accept(self, answer: str) -> None:
        """The far end's answer to ours. Raises SdpError."""
        said = self._read(answer)
        srtp = Srtp.answered(self._offered, said.crypto[0]) if said.crypto else None
        if self._offered and srtp is None:
            raise SdpError("The answer takes none of the keys that were offered.")
        self._settle(said, srtp)

    def _read(self, text: str) -> sip_sdp.Description:
        said = sip_sdp.read(text, self._config.codecs)
        if self._config.srtp == "required" and not said.crypto:
            raise SdpError("Only SRTP is spoken here (sip.srtp): offer RTP/SAVP with a=crypto.")
        return said

    def _answered(self, said: sip_sdp.Description) -> str:
        srtp = Srtp.answering(said.crypto[0], self._srtp) if said.crypto else None
        self._settle(said, srtp)
        return sip_sdp.answer(said, self._end, srtp.ours if srtp else None)

    def _settle(self, said: sip_sdp.Description, srtp: Srtp | None) -> None:
        self._srtp = srtp
        self._udp.agree(said, self._signalled, srtp)
        self.line.change(said.codec, said.payload_type, said.keys)
        # On hold the caller's time stands still: the agent would talk to music, or ask whether they are still there.
        self.line.media.hold(sends=said.listens, hears=not said.held)
        self._held = said.held

    def silent_s(self, now: float) -> float:
        """For so long nothing has come; 0 on hold."""
        return 0.0 if self._held else now - self.line.media.heard_at

    def statistics(self) -> Statistics:
        return self.line.media.statistics()

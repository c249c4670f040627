"""The media of one phone call: a socket, an RTP stream and a line, as offers and answers agree on them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from voicepipe.base.errors import KeysFailed, TransferFailed
from voicepipe.base.networks import network_of
from voicepipe.config.phone_config import SipConfig
from voicepipe.ingress.rtp_line import RtpLine
from voicepipe.line import NO_TRANSFER, PAUSES, OnKeys
from voicepipe.rtp import sip_sdp
from voicepipe.rtp.codec import CODECS, PCMU
from voicepipe.rtp.rtp_sender import PACKET_S
from voicepipe.rtp.sdes import Crypto, Srtp, offered
from voicepipe.rtp.sdp_text import SdpError
from voicepipe.rtp.sip_sdp import LocalDescription, SipDescription
from voicepipe.rtp.udp import UdpMedia

NO_TELEPHONE_EVENT = "The caller's phone takes no keys: its SDP names no telephone-event."


class SipLine(RtpLine):
    """The `Line` of a phone call by SIP."""

    kind = "sip"
    setup_ms = 0
    transfers = True

    refer: Callable[[str], Awaitable[None]] | None = None
    """Transfers the caller by REFER."""

    @property
    def caller_network(self) -> str:
        """The network from which the caller's sound comes: calls by SIP bring no token. A directory knows it by
        the SDP, which has the same one."""
        return network_of(self.source())

    async def transfer(self, target: str) -> None:
        """As `Line.transfer`."""
        if self.refer is None:
            raise TransferFailed(NO_TRANSFER)
        await self.refer(target)

    def close(self) -> None:
        super().close()
        self.refer = None

    @property
    def lacks_keys(self) -> str:
        """As `Line.lacks_keys`."""
        return "" if self.media.takes_keys else NO_TELEPHONE_EVENT

    async def _dial(self, keys: str, on_sent: OnKeys) -> None:
        """Send keys by RFC 4733, one by one: what is not sent yet can be called back. On hold they wait."""
        for key in keys:
            if pause_s := PAUSES.get(key):
                await asyncio.sleep(pause_s)
            else:
                try:
                    self.media.press(key)
                except ValueError as error:
                    raise KeysFailed(str(error)) from None
                while self.media.is_pressing:  # noqa: ASYNC110
                    await asyncio.sleep(PACKET_S)
            on_sent(key)


class SipMedia:
    """The media of one phone call: socket, RTP stream and line. Made by `opened`. `end`: our address; `signalled`: the
    IP address that the signalling came from."""

    def __init__(self, config: SipConfig, udp: UdpMedia, end: LocalDescription, line: SipLine, signalled: str) -> None:
        self.line = line
        self._config = config
        self._udp = udp
        self._end = end
        self._signalled = signalled
        self._srtp: Srtp | None = None
        self._offered: tuple[Crypto, ...] = ()
        """The SRTP keys in an offer of ours that is not answered yet."""
        line.source = lambda: udp.source

    @classmethod
    def opened(
        cls, config: SipConfig, local: str, host: str, signalled: str, said: SipDescription | None
    ) -> tuple["SipMedia", str]:
        """Open ports on `host`, an address of this machine that the caller reaches as `local`. Returns the media with
        our answer to the INVITE's offer, or our offer if it made none. Raises NoPort."""
        udp = UdpMedia(host, (config.first_port, config.last_port))
        end = LocalDescription(local, udp.open())
        first = (said.codec, said.payload_type) if said else (PCMU, 0)
        media = cls(config, udp, end, SipLine(*first, udp), signalled)
        if said:
            return media, media._answered(said)
        media.line.media.hold(sends=False, hears=True)  # Until their answer nobody knows where to.
        return media, media.offer()

    def close(self) -> None:
        """Release the ports. Safe to call twice."""
        self.line.close()
        self._udp.close()

    def answer(self, offer: str, signalled: str) -> str:
        """Our answer to another offer, whose request came from the IP address `signalled`: a caller who changes
        networks sends sound from there as well. Raises SdpError: all stays as it is."""
        said = read_sdp(offer, self._config)
        self._signalled = signalled
        return self._answered(said)

    def offer(self) -> str:
        """Our offer, where a request makes none."""
        self._offered = offered() if self._srtp or self._config.srtp == "required" else ()
        wanted = self._config.codecs
        codecs = sorted(CODECS, key=lambda one: wanted.index(one.name) if one.name in wanted else len(wanted))
        return sip_sdp.offer(self._end, codecs, self._offered)

    def accept(self, answer: str, signalled: str) -> None:
        """Apply the far end's answer to our offer; `signalled` as for `answer`. Raises SdpError: all stays as it is.

        We send in the first codec of theirs, and receive all of them (RFC 3264, 6.1 and 7), by our payload types and by
        theirs: the former are right where the two differ, but not all phones know that."""
        said = read_sdp(answer, self._config, prefer=())
        srtp = Srtp.answered(self._offered, said.crypto[0]) if said.crypto else None
        if self._offered and srtp is None:
            raise SdpError("The answer takes none of the keys that were offered.")
        self._signalled = signalled
        self._agree(said, srtp)
        self.line.media.may_send(sip_sdp.offered(CODECS))

    def _answered(self, said: SipDescription) -> str:
        srtp = Srtp.answering(said.crypto[0], self._srtp) if said.crypto else None
        self._agree(said, srtp)
        # The same key may be offered under another tag, by which its answer is known (RFC 4568, 5.1.2).
        ours = replace(srtp.ours, tag=said.crypto[0].tag) if srtp else None
        return sip_sdp.answer(said, self._end, ours)

    def _agree(self, said: SipDescription, srtp: Srtp | None) -> None:
        self._srtp = srtp
        self._udp.agree(said, self._signalled, srtp)
        self.line.change(said.codec, said.payload_type, said.keys)
        self.line.media.may_send(said.formats)
        # On hold the caller's time stands still: the agent would talk to music, or ask whether they are still there.
        self.line.media.hold(sends=said.listens, hears=not said.held)

    def refused(self) -> str:
        """Counts of packets that were dropped, for the log: a caller who is not heard mostly sends from an unexpected
        address."""
        if self._udp.refused is None:
            return "no datagrams refused"
        host, port = self._udp.refused
        return f"{self._udp.invalid} datagrams refused, the last from {host}:{port}"


def read_sdp(text: str, config: SipConfig, prefer: tuple[str, ...] | None = None) -> SipDescription:
    """Read a far end's SDP. `prefer`: codecs as for `sip_sdp.read`, `sip.codecs` where it is not given. Raises
    SdpError: it cannot be agreed to."""
    said = sip_sdp.read(text, config.codecs if prefer is None else prefer)
    if config.srtp == "required" and not said.crypto:
        raise SdpError("Only SRTP is spoken here (sip.srtp): offer RTP/SAVP with a=crypto.")
    return said

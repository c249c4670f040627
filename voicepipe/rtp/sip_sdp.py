"""Offers and answers (RFC 3264) of phone calls: one audio stream to an address and a port, without ICE.

SRTP by keys in the SDP where it is offered; DTLS-SRTP is WebRTC's (sdp.py).
"""

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address

from voicepipe.rtp import sdes
from voicepipe.rtp.codec import UNMAPPED, Codec, Formats, NonAudio, formats, none_in_common
from voicepipe.rtp.latch import Address
from voicepipe.rtp.sdes import Crypto
from voicepipe.rtp.sdp_text import MediaDescription, SdpError, parse
from voicepipe.rtp.telephone_events import KeyFormat

_KEY_TYPES = {8000: 101, 48_000: 110}
FASTEST = 48_000
"""Hz of the fastest clock: the duration of a key has 16 bits."""
_PLAIN, _SECURE = ("RTP/AVP", "RTP/AVPF"), ("RTP/SAVP", "RTP/SAVPF")
_MIRRORED = {"sendonly": "recvonly", "recvonly": "sendonly", "inactive": "inactive", "sendrecv": "sendrecv"}
_RTPMAP = re.compile(r"([0-9]{1,3})\s+([A-Za-z0-9._+-]{1,40})/([0-9]{1,6})(?:/([0-9]{1,2}))?")
_RTCP = re.compile(r"([0-9]{1,5})(?:\s+(.*))?")
Maps = dict[int, tuple[str, int, str]]
"""A format's name in lower case, clock and channels, by payload type."""


@dataclass(frozen=True, slots=True)
class SipDescription:
    """The content of a peer's offer or answer for a phone call."""

    media: tuple[MediaDescription, ...]
    audio: int
    """The medium of the call."""
    remote: Address
    """The peer's address; 0.0.0.0 where the peer wants nothing sent (RFC 2543's way to hold)."""
    rtcp: Address
    """The address for our reports, unless `rtcp_mux`."""
    rtcp_mux: bool
    payload_type: int
    codec: Codec
    """The preferred one of those that we have, with its payload type."""
    formats: Formats
    """The formats in it that we can receive. An offerer may be sent any of those in the answer (RFC 3264, 7), and some
    send formats that are only in their offer."""
    keys: KeyFormat | None
    """The format of keys, by the first codec's clock if there are several; None: the peer takes none."""
    direction: str
    crypto: tuple[Crypto, ...]
    """The keys by which the peer offers to protect what it sends; empty: it is sent in clear."""

    @property
    def listens(self) -> bool:
        """Whether sound may be sent to the peer."""
        return self.direction in ("sendrecv", "recvonly") and self.remote[0] != "0.0.0.0"

    @property
    def held(self) -> bool:
        """Whether what the peer sends, if anything, is music on hold."""
        return self.direction in ("sendonly", "inactive") or self.remote[0] == "0.0.0.0"


class LocalDescription:
    """Our address and RTP port in all descriptions of one call; RTCP's port is the next."""

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port
        self._session = secrets.randbits(31)
        self._version = 0
        self._said = ""

    def described(self, media: Iterable[str]) -> str:
        """A description with these m= lines and attributes; a new version unless it is the same as the last one."""
        lines = ["s=-", f"c=IN IP4 {self.address}", "t=0 0", *media]
        said = "".join(f"{line}\r\n" for line in lines)
        self._version += said != self._said
        self._said = said
        return f"v=0\r\no=- {self._session} {self._version} IN IP4 {self.address}\r\n{said}"


def read(text: str, prefer: tuple[str, ...] = ()) -> SipDescription:
    """Read an offer, or the answer to ours; codecs (`Codec.name`) in the order of `prefer`, then in the peer's. Raises
    SdpError."""
    media, refusal = parse(text), None
    for index, one in enumerate(media):
        if one.kind == "audio" and one.port:
            try:
                return _described(media, index, prefer)
            except SdpError as error:  # There may be a better one: some phones offer one with SRTP, one without.
                refusal = refusal or error
    raise refusal or SdpError("There is no audio in this SDP, or it is refused: add an audio stream with a port.")


def answer(said: SipDescription, local: LocalDescription, crypto: Crypto | None = None) -> str:
    """Our answer to an offer: its media in its order, those refused with port 0. `crypto`: ours, where the offer has
    some."""
    lines = []
    for index, theirs in enumerate(said.media):
        if index != said.audio:
            lines.append(f"m={theirs.kind} 0 {theirs.proto} {theirs.formats[0]}")
            continue
        lines += _audio(local, theirs.proto, {said.payload_type: said.codec}, dict([said.keys] if said.keys else []))
        lines += ["a=rtcp-mux"] * said.rtcp_mux
        lines += [f"a=crypto:{crypto}"] if crypto else []
        lines.append(f"a={_MIRRORED[said.direction]}")
    return local.described(lines)


def offer(local: LocalDescription, codecs: Iterable[Codec], crypto: tuple[Crypto, ...] = ()) -> str:
    """Our offer, where an INVITE has none. With `crypto` (`sdes.offered`) only SRTP is offered."""
    types, events = _offered(codecs)
    lines = _audio(local, "RTP/SAVP" if crypto else "RTP/AVP", types, events)
    return local.described([*lines, *(f"a=crypto:{one}" for one in crypto), "a=sendrecv"])


def offered(codecs: Iterable[Codec]) -> Formats:
    """The formats that may be sent to us by an offer of these codecs. An answer may give them other payload types:
    these hold for what is sent to its sender (RFC 3264, 5.1)."""
    types, events = _offered(codecs)
    return {**types, **dict.fromkeys(events, NonAudio.KEYS)}


def _offered(codecs: Iterable[Codec]) -> tuple[dict[int, Codec], dict[int, int]]:
    """By payload type: codecs, and the clocks of keys."""
    types = {codec.payload_type: codec for codec in codecs}
    return types, {_KEY_TYPES[codec.clock]: codec.clock for codec in types.values()}


def _audio(local: LocalDescription, proto: str, types: dict[int, Codec], events: dict[int, int]) -> list[str]:
    lines = [f"m=audio {local.port} {proto} {' '.join(map(str, [*types, *events]))}"]
    for number, codec in types.items():
        if codec.name == "opus":
            lines += [f"a=rtpmap:{number} opus/48000/2", f"a=fmtp:{number} useinbandfec=1"]
        else:
            lines.append(f"a=rtpmap:{number} {codec.name.upper()}/{codec.clock}")
    for number, clock in events.items():
        lines += [f"a=rtpmap:{number} {NonAudio.KEYS.value}/{clock}", f"a=fmtp:{number} 0-15"]
    return [*lines, "a=ptime:20"]


def _described(everything: tuple[MediaDescription, ...], index: int, prefer: tuple[str, ...]) -> SipDescription:
    media = everything[index]
    crypto, maps = _crypto(media), _maps(media)
    heard = formats(maps.items())
    payload_type, codec = min(
        _codecs(maps, heard), key=lambda one: prefer.index(one[1].name) if one[1].name in prefer else len(prefer)
    )
    remote = _address(media.connection), media.port
    rtcp, mux, keys = _rtcp(media, remote), bool(media.all("rtcp-mux")), _keys(maps, codec)
    # Last: it may go through what all media share, and nothing is refused from here on.
    directions = (name for level in (media.attributes, media.session) for name in level if name in _MIRRORED)
    direction = next(directions, "sendrecv")
    return SipDescription(everything, index, remote, rtcp, mux, payload_type, codec, heard, keys, direction, crypto)


def _maps(media: MediaDescription) -> Maps:
    """The formats of an offer, in the peer's order."""
    maps = dict(UNMAPPED)
    for value in media.all("rtpmap"):
        if found := _RTPMAP.fullmatch(value):
            maps[int(found[1])] = found[2].lower(), int(found[3]), found[4] or ""
    numbers = [int(token) for token in dict.fromkeys(media.formats) if token.isdecimal() and len(token) < 4]
    return {number: maps.get(number, (f"format {number}", 0, "")) for number in numbers if number < 128}


def _codecs(maps: Maps, heard: Formats) -> list[tuple[int, Codec]]:
    found = [(number, form) for number, form in heard.items() if isinstance(form, Codec)]
    if not found:
        raise SdpError(none_in_common(sorted({name for name, _, _ in maps.values()} - {NonAudio.KEYS.value})[:10]))
    return found


def _keys(maps: Maps, codec: Codec) -> KeyFormat | None:
    """The best format of keys for sound in this codec."""
    found = [KeyFormat(number, clock) for number, (name, clock, _) in maps.items() if name == NonAudio.KEYS.value]
    usable = [one for one in found if 0 < one.clock <= FASTEST]
    return min(usable, key=lambda one: one.clock != codec.clock, default=None)


def _crypto(media: MediaDescription) -> tuple[Crypto, ...]:
    if media.proto in _PLAIN:
        return ()
    if media.proto not in _SECURE:
        dtls = "DTLS-SRTP" if "TLS" in media.proto else media.proto
        raise SdpError(f"The audio is offered by {dtls}: RTP/AVP, or RTP/SAVP with a=crypto, is spoken here.")
    lines = media.all("crypto")
    if usable := tuple(crypto for line in lines if (crypto := sdes.read(line))):
        return usable
    if not lines and ("fingerprint" in media.attributes or "fingerprint" in media.session):
        raise SdpError("The audio is offered by DTLS-SRTP: RTP/AVP, or RTP/SAVP with a=crypto, is spoken here.")
    suites = ", ".join(sdes.SUITES)
    raise SdpError(
        f"The audio is offered by SRTP without an a=crypto line that can be used: {suites} can, without MKI."
    )


def _address(connection: str) -> str:
    kind, _, address = connection.strip().rpartition(" ")
    if not connection:
        raise SdpError("The audio has no c= line that says where it is to be sent.")
    if kind == "IN IP6":
        raise SdpError("The audio is at an IPv6 address: only IPv4 is spoken here.")
    try:
        found = IPv4Address(address)
    except ValueError as error:
        raise SdpError(
            "The c= line has no IPv4 address; names of hosts are not looked up: send the address."
        ) from error
    if kind != "IN IP4" or found.is_multicast or found.is_reserved:
        raise SdpError('The c= line is not of the form "IN IP4 address", with one host\'s address.')
    return str(found)


def _rtcp(media: MediaDescription, remote: Address) -> Address:
    for value in media.all("rtcp"):
        found = _RTCP.fullmatch(value)
        if found and 0 < int(found[1]) < 65536:
            return (_address(found[2]) if found[2] else remote[0]), int(found[1])
    return remote[0], min(remote[1] + 1, 65535)

"""Offers and answers (RFC 8829, RFC 9429) of a call: one audio stream both ways, and one transport for data channels.

Parsed and printed by aiortc.
"""

from dataclasses import dataclass
from typing import Literal

from aiortc import RTCIceCandidate, RTCRtpCodecParameters
from aiortc.rtcdtlstransport import RTCDtlsParameters
from aiortc.rtcsctptransport import RTCSctpCapabilities
from aiortc.sdp import GroupDescription, MediaDescription, SessionDescription, SsrcDescription

from voicepipe.rtp.codec import CODECS, UNMAPPED, Codec, Formats, formats, none_in_common
from voicepipe.rtp.rtp_session import cname
from voicepipe.rtp.sdp_text import LONGEST, MOST_FORMATS, MOST_MEDIA, SdpError, check_formats
from voicepipe.rtp.transport import RemoteParameters, Transport

_SETUP: dict[str, Literal["client", "server"]] = {"auto": "client", "client": "server", "server": "client"}
"""Our role in the handshake for the peer's: where it leaves us the choice we begin, which saves a flight."""
_FMTP = {"opus": {"minptime": 10, "useinbandfec": 1}}
_DIRECTIONS = {"sendonly": "recvonly", "recvonly": "sendonly", "inactive": "inactive"}
_DATA = "webrtc-datachannel"
_DATA_PORT = 5000

_USED = frozenset(
    "candidate end-of-candidates fingerprint group ice-lite ice-options ice-pwd ice-ufrag inactive max-message-size "
    "mid recvonly rtcp-mux rtpmap sctp-port sendonly sendrecv setup".split()
)
"""Attributes that a call depends on. aiortc's parser gets no others: for each a=rtcp-fb and each a=fmtp it goes through
all a=rtpmap, for each a=ssrc through all others. 20 kB of them took half a second."""

MOST_CANDIDATES = 32


@dataclass(frozen=True, slots=True)
class WebRtcDescription:
    """The content of a peer's offer or answer for a WebRTC call."""

    session: SessionDescription
    audio: MediaDescription
    codec: Codec
    payload_type: int
    formats: Formats
    """The formats in it that we can receive."""
    remote: RemoteParameters


def read(text: str) -> WebRtcDescription:
    """Read an offer, or the answer to ours. Raises SdpError."""
    if len(text) > LONGEST:
        raise SdpError(f"This SDP has {len(text)} characters; at most {LONGEST} are read.")
    session = _parsed(text)
    audio = next((media for media in session.media if media.kind == "audio" and media.port), None)
    if audio is None:
        raise SdpError("There is no audio in the description: add an audio track or transceiver.")
    heard = _formats(audio)
    payload_type, codec = next((number, form) for number, form in heard.items() if isinstance(form, Codec))
    if not audio.ice or not audio.ice.usernameFragment or not audio.ice.password:
        raise SdpError("The audio has no ice-ufrag and ice-pwd: only WebRTC (ICE) is spoken here.")
    if audio.dtls is None or not audio.dtls.fingerprints:
        raise SdpError("The audio has no fingerprint or no setup: only DTLS-SRTP is spoken here.")
    data = _data(session, audio)
    remote = RemoteParameters(
        audio.ice,
        [candidate for media in session.media for candidate in media.ice_candidates][:MOST_CANDIDATES],
        tuple(audio.dtls.fingerprints),
        _SETUP[audio.dtls.role],
        data.sctp_port or _DATA_PORT if data else None,
        data.sctpCapabilities.maxMessageSize if data and data.sctpCapabilities else 65536,
    )
    return WebRtcDescription(session, audio, codec, payload_type, heard, remote)


def offer(transport: Transport, candidates: list[RTCIceCandidate], codecs: tuple[Codec, ...]) -> str:
    """A caller's offer of these codecs and a data channel."""
    session = _session()
    types = {codec.name: codec.payload_type for codec in codecs}
    parts = (_audio(types, "0"), _data_media("1", transport))
    for media in parts:
        _transported(media, transport, candidates, "auto")
    return _printed(session, parts)


def answer(said: WebRtcDescription, transport: Transport, candidates: list[RTCIceCandidate], ssrc: int) -> str:
    """Our answer to an offer: its media in its order, those refused with port 0."""
    data = _data(said.session, said.audio)
    parts = []
    for theirs in said.session.media:
        mid = theirs.rtp.muxId
        if theirs is said.audio:
            media = _audio({said.codec.name: said.payload_type}, mid)
            media.ssrc = [SsrcDescription(ssrc, cname(ssrc))]
            media.direction = _DIRECTIONS.get(theirs.direction or "", "sendrecv")
        elif theirs is data:
            media = _data_media(mid, transport)
        else:
            media = MediaDescription(theirs.kind, 0, theirs.profile, theirs.fmt)
            media.rtp.muxId, media.direction = mid, "inactive"
        _transported(media, transport, candidates if media.port else [], said.remote.dtls_role)
        parts.append(media)
    return _printed(_session(), tuple(parts))


def _parsed(text: str) -> SessionDescription:
    text = _used(text)
    try:
        return SessionDescription.parse(text)
    except (AssertionError, AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError) as error:
        # That is how its parser says that it does not understand.
        raise SdpError(f"This is no SDP that can be read ({type(error).__name__}: {error}).") from error


def _used(text: str) -> str:
    """The lines that a call depends on. Raises SdpError: there are more media or formats than anybody offers."""
    used, media, formats = list[str](), 0, 0
    for line in text.splitlines():  # Where aiortc's parser splits it, which is not at CRLF alone.
        if line.startswith("m="):
            media, formats = media + 1, 0
            check_formats(len(line.split()) - len(("kind", "port", "protocol")))
        elif line.startswith("a="):
            name = line[2:].partition(":")[0]
            if name not in _USED:
                continue
            formats += name == "rtpmap"
            if formats > MOST_FORMATS:
                raise SdpError(f"A medium of this SDP has over {MOST_FORMATS} a=rtpmap; no more are read.")
        used.append(line)
    if media > MOST_MEDIA:
        raise SdpError(f"This SDP has {media} media; at most {MOST_MEDIA} are read.")
    return "\r\n".join(used)


def _formats(audio: MediaDescription) -> Formats:
    """The formats that we can receive, in the peer's order of preference. Raises SdpError: no sound is among them."""
    known = dict(UNMAPPED)
    for codec in audio.rtp.codecs:
        known[codec.payloadType or 0] = codec.name.lower(), codec.clockRate, ""
    # aiortc lets bytes pass as payload types.
    found = formats((number, known[number]) for number in audio.fmt if number < MOST_FORMATS and number in known)
    if not any(isinstance(form, Codec) for form in found.values()):
        raise SdpError(none_in_common(sorted({codec.name for codec in audio.rtp.codecs})))
    return found


def _data(session: SessionDescription, audio: MediaDescription) -> MediaDescription | None:
    """The data channels' part, if it shares the audio's transport (BUNDLE)."""
    bundled = {str(mid) for group in session.group if group.semantic == "BUNDLE" for mid in group.items}
    for media in session.media:
        if media.kind == "application" and {media.rtp.muxId, audio.rtp.muxId} <= bundled:
            return media
    return None


def _session() -> SessionDescription:
    session = SessionDescription()
    session.origin = "- 0 0 IN IP4 127.0.0.1"
    session.msid_semantic.append(GroupDescription("WMS", ["*"]))
    return session


def _audio(types: dict[str, int], mid: str) -> MediaDescription:
    media = MediaDescription("audio", 9, "UDP/TLS/RTP/SAVPF", list(types.values()))
    media.rtp.muxId, media.direction, media.msid = mid, "sendrecv", "voicepipe audio"
    media.rtcp_port, media.rtcp_host, media.rtcp_mux = 9, "0.0.0.0", True
    for codec in (codec for codec in CODECS if codec.name in types):
        opus = codec.name == "opus"
        media.rtp.codecs.append(
            RTCRtpCodecParameters(
                f"audio/{codec.name if opus else codec.name.upper()}",
                codec.clock,
                2 if opus else None,
                types[codec.name],
                parameters=dict(_FMTP.get(codec.name, {})),
            )  # fmt: skip
        )
    return media


def _data_media(mid: str, transport: Transport) -> MediaDescription:
    media = MediaDescription("application", 9, "UDP/DTLS/SCTP", [_DATA])
    media.rtp.muxId, media.sctp_port = mid, _DATA_PORT
    media.sctpCapabilities = RTCSctpCapabilities(transport.sctp.message_bytes)
    return media


def _transported(media: MediaDescription, transport: Transport, candidates: list[RTCIceCandidate], role: str) -> None:
    media.ice = transport.ice_parameters
    media.dtls = RTCDtlsParameters(transport.fingerprints, role)
    if candidates:
        media.ice_candidates, media.ice_candidates_complete = list(candidates), True
        media.host, media.port = candidates[0].ip, candidates[0].port


def _printed(session: SessionDescription, parts: tuple[MediaDescription, ...]) -> str:
    session.media = list(parts)
    bundled: list[int | str] = [media.rtp.muxId for media in parts if media.port and media.rtp.muxId]
    if bundled:
        session.group.append(GroupDescription("BUNDLE", bundled))
    return str(session)

"""The messages of providers' media streams, both ways: one grammar, a table for each dialect. Pure.

Twilio: https://www.twilio.com/docs/voice/media-streams/websocket-messages
Telnyx: https://developers.telnyx.com/api-reference/websockets/stream-call-media-over-websocket
"""

import binascii
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from voicepipe.audio import Pcm, g711
from voicepipe.base.foreign_json import decode
from voicepipe.config.phone_config import StreamedKind

Encoding = Literal["pcmu", "pcma", "l16"]
MESSAGE_BYTES = 64 * 1024
"""Bytes of the largest message that is read. Providers send 20 ms of sound at a time, which is under 1 kB."""


class BadMessage(ValueError):
    """A message does not follow the grammar; the text says what is wrong with it."""


class SoundFormat(NamedTuple):
    """The format of samples in payloads."""

    encoding: Encoding
    rate: int

    def decode(self, payload: bytes) -> Pcm:
        """Samples as int16[n] at `rate`. L16 is little-endian here, whatever RFC 3551 says: that is how Telnyx sends
        it."""
        if self.encoding == "l16":
            return np.frombuffer(payload[: len(payload) & ~1], "<i2").astype(np.int16, copy=False)
        return g711.decode(self.encoding, payload)

    def encode(self, pcm: Pcm) -> bytes:
        """The bytes of these samples, as `decode` reads them."""
        return pcm.astype("<i2").tobytes() if self.encoding == "l16" else g711.encode(self.encoding, pcm)


class StreamStart(NamedTuple):
    """The message with which a stream begins."""

    stream_id: str
    call_id: str
    caller: str
    """The calling number; empty where the dialect sends it in a parameter."""
    called: str
    parameters: dict[str, str]
    sound: SoundFormat
    """The format of the caller's sound."""


class StreamMedia(NamedTuple):
    """Some of the caller's sound; `chunk` counts from 1."""

    payload: bytes
    chunk: int


class StreamKey(NamedTuple):
    """The caller pressed a key of their telephone."""

    key: str


class StreamMark(NamedTuple):
    """The sound that we sent before this mark has been played, or was cleared."""

    name: str


class StreamStop(NamedTuple):
    """The stream ends: nothing follows."""


class StreamError(NamedTuple):
    """An error report: the provider could not do what we asked."""

    text: str


StreamMessage = StreamStart | StreamMedia | StreamKey | StreamMark | StreamStop | StreamError


@dataclass(frozen=True, slots=True)
class Dialect:
    """The messages of one provider's media streams."""

    kind: StreamedKind
    stream_id: str
    call_id: str
    parameters: str
    format: str
    rate: str
    encodings: dict[str, Encoding]
    addressed: bool
    """Our messages contain the stream's id."""
    ordered: bool
    """Sound comes in order."""
    keys: frozenset[str] = field(default=frozenset("0123456789*#ABCD"))
    lacks_keys: str = ""
    """As `Line.lacks_keys`."""

    def read(self, raw: str | bytes) -> tuple[str, StreamMessage] | None:
        """The stream that a message names, and its content; None: nothing that concerns us. Raises BadMessage."""
        if len(raw) > MESSAGE_BYTES:
            raise BadMessage(f"is of {len(raw)} bytes, where {MESSAGE_BYTES} are allowed")
        try:
            message = decode(raw)
        except msgspec.DecodeError as error:
            raise BadMessage(f"is no JSON ({error})") from None
        if not isinstance(message, dict):
            raise BadMessage("is no JSON object")
        content = self._message(message)
        return None if content is None else (_text(message, self.stream_id), content)

    def _message(self, message: dict[str, Any]) -> StreamMessage | None:
        match message.get("event"):
            case "start":
                return self._start(message, _table(message, "start"))
            case "media":
                return _media(_table(message, "media"))
            case "dtmf":
                key = _text(_table(message, "dtmf"), "digit").upper()
                return StreamKey(key) if key in self.keys else None
            case "mark":
                return StreamMark(_text(_table(message, "mark"), "name"))
            case "stop":
                return StreamStop()
            case "error":
                said = _table(message, "payload")
                return StreamError(": ".join(filter(None, (_text(said, name) for name in ("code", "title", "detail")))))
        return None

    def _start(self, message: dict[str, Any], start: dict[str, Any]) -> StreamStart:
        form = _table(start, self.format)
        named = _text(form, "encoding")
        encoding = self.encodings.get(named.lower())
        rate = _number(form, self.rate)
        if encoding is None or rate not in ((8000, 16_000) if encoding == "l16" else (8000,)):
            allowed = ", ".join(self.encodings)
            raise BadMessage(f"offers sound as {named[:80] or 'nothing'} at {rate} Hz; what can be taken is {allowed}")
        parameters = {name: value for name, value in _table(start, self.parameters).items() if isinstance(value, str)}
        call_id = _text(start, self.call_id)
        stream_id = _text(message, self.stream_id)
        if not call_id or not stream_id:
            raise BadMessage(f"has no {self.stream_id} or no {self.call_id}")
        return StreamStart(
            stream_id, call_id, _text(start, "from"), _text(start, "to"), parameters, SoundFormat(encoding, rate)
        )

    def media(self, stream_id: str, payload: bytes) -> bytes:
        """A message with sound for the caller."""
        return self._said("media", stream_id, media={"payload": b64encode(payload).decode()})

    def mark(self, stream_id: str, name: str) -> bytes:
        """A message with a mark, which comes back when all that was sent before it has been played."""
        return self._said("mark", stream_id, mark={"name": name})

    def clear(self, stream_id: str) -> bytes:
        """A message that drops what has not been played."""
        return self._said("clear", stream_id)

    def _said(self, event: str, stream_id: str, **more: object) -> bytes:
        address = {self.stream_id: stream_id} if self.addressed else {}
        return msgspec.json.encode({"event": event, **address, **more})


TWILIO = Dialect(
    kind="twilio",
    stream_id="streamSid",
    call_id="callSid",
    parameters="customParameters",
    format="mediaFormat",
    rate="sampleRate",
    encodings={"audio/x-mulaw": "pcmu"},
    addressed=True,
    ordered=True,
    lacks_keys="Twilio sends no keys while a call is streamed.",
)
TELNYX = Dialect(
    kind="telnyx",
    stream_id="stream_id",
    call_id="call_control_id",
    parameters="custom_parameters",
    format="media_format",
    rate="sample_rate",
    encodings={"pcmu": "pcmu", "pcma": "pcma", "l16": "l16"},
    addressed=False,
    ordered=False,
)


def _media(media: dict[str, Any]) -> StreamMedia | None:
    if _text(media, "track") not in ("", "inbound"):
        return None  # Our own sound, on streams of both tracks.
    try:
        payload = b64decode(_text(media, "payload"), validate=True)
    except (binascii.Error, ValueError):
        raise BadMessage("has a payload that is no base64") from None
    return StreamMedia(payload, _number(media, "chunk"))


def _table(message: dict[str, Any], name: str) -> dict[str, Any]:
    value = message.get(name)
    return value if isinstance(value, dict) else {}


def _text(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    return str(value) if isinstance(value, str | int) else ""


def _number(message: dict[str, Any], name: str) -> int:
    """A whole number, which Twilio and Telnyx write as text; 0: there is none."""
    text = _text(message, name)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0

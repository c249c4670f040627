"""The outgoing stream of a call: speech at once, silence where none comes, keys instead of both. Timestamps keep to the
time, whatever is sent or not."""

import secrets
from collections.abc import Callable
from typing import Protocol

import numpy as np

from voicepipe.audio import Pcm
from voicepipe.rtp.codec import Codec
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.telephone_events import KeyFormat, KeySender

PACKET_S = 0.020
STEADY = 5
"""Identical packets of silence after which the encoder is not called for the next: most of a call is silence, and its
packet takes half as long as one of speech."""


class PacketSink(Protocol):
    """Receives a peer's packets: a call's `RtpSession`."""

    def datagram(self, data: bytes, arrived: float) -> None:
        """RTP or RTCP, decrypted, that reached the socket at the monotonic second `arrived`."""


class PacketWire(Protocol):
    """The connection to a peer. It protects packets by SRTP where that was agreed. Implemented by `UdpMedia`, and by
    ICE `Transport`.
    """

    def deliver_to(self, sink: PacketSink) -> None:
        """Give the peer's packets to `sink` from now on."""

    def send_rtp(self, packet: bytes) -> None:
        """Protect and send an RTP packet."""

    def send_rtcp(self, packet: bytes) -> None:
        """Protect and send an RTCP packet."""


class RtpSender:
    """The outgoing stream of a call: speech at once, silence where none comes, keys instead of both. `send` and `tick`
    are to be called every 20 ms."""

    def __init__(self, codec: Codec, payload_type: int, wire: PacketWire, clock: Callable[[], float]) -> None:
        self.ssrc = secrets.randbits(32)
        self.packets = self.bytes = 0
        self._wire = wire
        self._clock = clock
        self.on = True
        """False: on hold."""
        # Half of the numbers are left, so that early losses do not hide that they begin anew (RFC 3711).
        self._seq, self._timestamp = secrets.randbits(15), secrets.randbits(32)
        self._due = 0.0
        """When the last packet has been played."""
        self._gap = True
        """No packets were sent between the last one and the next."""
        self._speaking = False
        self._keys: KeySender | None = None
        """None: the peer takes none."""
        self._use(codec)
        self.change(codec, payload_type, None)

    def _use(self, codec: Codec) -> None:
        self._codec, self._encode = codec, codec.encoder()
        self._silence: Pcm = np.zeros(codec.out_rate // 50, np.int16)
        self._still, self._same = b"", 0
        """The latest packet of silence, and the number of identical ones before it."""

    def send(self, pcm: Pcm) -> None:
        """20 ms of speech at once: int16[n] at the codec's `out_rate`. Under a key or on hold it is not sent."""
        if not self.on or self._key():
            return
        now = self._clock()
        if now > self._due + 2 * PACKET_S:
            self._skip(now)
        self._same = 0
        self._send_payload(self._encode(pcm))
        self._speaking = True

    def tick(self, now: float) -> None:
        """Send what is due without speech: a key, or silence."""
        if not self.on:
            return
        key = self._key()
        # A packet of speech may be late by as much as it lasts, and is not to be overtaken by silence. Where none came,
        # speech has ended, and what was waited for is made good here: at the next beginning it would be a delay.
        if now >= self._due + (PACKET_S if self._speaking and not key else 0.0):
            if (self._speaking and not key) or now > self._due + 2 * PACKET_S:
                self._skip(now)
            self._speaking = False
            if key:
                self._send(self._keys_type, *key.packet(self._timestamp))
            else:
                self._send_silence()

    @property
    def takes_keys(self) -> bool:
        return self._keys is not None

    @property
    def is_pressing(self) -> bool:
        """Whether keys wait to be sent, or one is down."""
        return self._keys is not None and self._keys.is_pressing

    def press(self, keys: str) -> None:
        """Send keys, after those that were pressed before. Raises ValueError: none is sent."""
        if self._keys is None:
            raise ValueError("The peer takes no keys: its SDP names no telephone-event.")
        self._keys.press(keys)

    def change(self, codec: Codec, payload_type: int, keys: KeyFormat | None) -> None:
        """Go on with another codec. Keys that were not sent yet go with the old one, or in the peer's new format for
        them."""
        if codec is not self._codec or keys is None or self._keys is None or keys.clock != self._keys.durations:
            self._keys = KeySender(codec.clock, keys.clock) if keys else None
        if codec is not self._codec:
            self._use(codec)
        self._type, self._keys_type = payload_type, keys.payload_type if keys else 0

    def hold(self, *, sends: bool) -> None:
        """Stop sending, or go on."""
        self.on = sends
        self._speaking = self._speaking and sends

    def _key(self) -> KeySender | None:
        """The key to which the next packet belongs, if any."""
        return self._keys if self._keys and self._keys.wants(self._timestamp) else None

    def timestamp(self, now: float) -> int:
        """The timestamp of this moment: the last packet has been played at `_due`."""
        return (self._timestamp + round((now - self._due) * self._codec.clock)) & 0xFFFFFFFF

    def _skip(self, now: float) -> None:
        """Nothing was sent for a while: timestamps advance with the time."""
        if self._due:
            self._timestamp += round((now - self._due) * self._codec.clock)
        self._due, self._gap = now, True

    def _send_silence(self) -> None:
        if self._same < STEADY:
            before, self._still = self._still, self._encode(self._silence)
            self._same = self._same + 1 if self._still == before else 0
        self._send_payload(self._still)

    def _send_payload(self, payload: bytes) -> None:
        self._send(self._type, self._timestamp, payload, self._gap)
        self._gap = False

    def _send(self, payload_type: int, timestamp: int, payload: bytes, marker: bool) -> None:
        seq, timestamp = self._seq & 0xFFFF, timestamp & 0xFFFFFFFF
        self._wire.send_rtp(bytes(RtpPacket(payload_type, seq, timestamp, self.ssrc, payload, marker)))
        self._seq += 1
        self._timestamp += self._codec.clock // 50
        self._due += PACKET_S
        self.packets += 1
        self.bytes += len(payload)

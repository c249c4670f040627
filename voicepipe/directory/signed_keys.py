"""`ek_` keys that directories make: signed, so that every directory of a fleet accepts them, whichever made them.

A key is too short for the session that it was made for. Its maker tells the session to all directories by the bus; one
that was started since asks the others for it.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from heapq import heappop, heappush

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from voicepipe.agent import Part
from voicepipe.base.errors import TooManySecrets, Unauthorized
from voicepipe.directory.bus import Bus, BusMessage, decoding
from voicepipe.directory.tokens import Signer, verified

PREFIX = "ek_"
SESSION_BYTES = 64 * 1024
"""Bytes of one session; it travels by the bus with every call."""
KEPT, KEPT_BYTES = 10_000, 16 * 1024 * 1024
"""A tenant's sessions that have not expired, and their bytes."""
WAIT_S = 0.5
"""Seconds in which the other directories have to answer."""
SESSIONS = "vp.ek.session"
"""Subject of `KeySession`, from the directory that made the key, or is asked for it."""
QUESTIONS = "vp.ek.wanted"
"""Subject of `SessionQuestion`."""


class SignedKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of an `ek_` key that a directory has signed."""

    ek: str
    """The key's id."""
    tenant: str
    agent: str
    until: int
    """Unix seconds of directories' clocks."""
    locked: tuple[Part, ...] = ()
    has_session: bool = False


class KeySession(msgspec.Struct, frozen=True):
    """The session with which a key was made, as directories exchange it."""

    ek: str
    tenant: str
    until: int
    session: msgspec.Raw


class SessionQuestion(msgspec.Struct, frozen=True):
    """Asks the other directories for the session of a key."""

    ek: str


class SignedKeys:
    """Makes and reads `ek_` keys at one directory. `keys`: public keys of all directories of the fleet; `clock` gives
    Unix seconds."""

    def __init__(
        self, bus: Bus, signer: Signer, keys: Mapping[str, Ed25519PublicKey], clock: Callable[[], float] = time.time
    ) -> None:
        self._bus = bus
        self._signer = signer
        self._keys = keys
        self._clock = clock
        self._sessions: dict[str, KeySession] = {}
        self._size: dict[str, tuple[int, int]] = {}
        """By tenant: sessions and their bytes."""
        self._expiring: list[tuple[int, str]] = []
        """A heap of Unix seconds with keys' ids."""
        self._came = asyncio.Condition()

    def become(self, keys: Mapping[str, Ed25519PublicKey]) -> None:
        """Take the keys of these directories from now on, and of no others."""
        self._keys = keys

    async def run(self) -> None:
        """Receive other directories' sessions and questions, until cancelled."""
        async with self._bus.listen(SESSIONS, QUESTIONS) as messages:
            async for message in messages:
                with decoding(message):
                    await self._take(message)

    async def make(
        self, tenant: str, agent: str, session: bytes, locked: tuple[Part, ...], seconds: int
    ) -> tuple[str, int]:
        """A new key, and the Unix second at which it expires. `session`: JSON, or empty for none. Raises
        TooManySecrets."""
        until = int(self._clock()) + seconds
        reference = SignedKey(secrets.token_hex(8), tenant, agent, until, locked, bool(session))
        if session:
            kept = KeySession(reference.ek, tenant, until, msgspec.Raw(session))
            if not self._keep(kept):
                raise TooManySecrets(
                    f"Tenant {tenant} has sessions of {KEPT} ek_ keys, or {KEPT_BYTES} bytes of them, that have not "
                    "expired. Ask for a shorter expires_after, or wait for some to expire."
                )
            await self._bus.publish(SESSIONS, msgspec.json.encode(kept))
        return PREFIX + self._signer.signed(msgspec.json.encode(reference)), until

    def read(self, key: str) -> SignedKey:
        """The content of a key. Raises Unauthorized."""
        reference = verified(key.removeprefix(PREFIX), self._keys, SignedKey)
        if reference is None or reference.until <= self._clock():
            raise Unauthorized("This ek_ key is unknown or has expired: ask for another.")
        return reference

    async def session(self, reference: SignedKey) -> bytes:
        """The session of a key, as JSON; empty where it has none. Raises Unauthorized: no directory knows it."""
        if not reference.has_session:
            return b""
        if reference.ek not in self._sessions:
            await self._bus.publish(QUESTIONS, msgspec.json.encode(SessionQuestion(reference.ek)))
            try:
                async with asyncio.timeout(WAIT_S), self._came:
                    await self._came.wait_for(lambda: reference.ek in self._sessions)
            except TimeoutError:
                raise Unauthorized(
                    "The session of this ek_ key is not known here any more: ask for another key."
                ) from None
        return bytes(self._sessions[reference.ek].session)

    async def _take(self, message: BusMessage) -> None:
        if message.subject == SESSIONS:
            self._keep(msgspec.json.decode(message.data, type=KeySession))
            async with self._came:
                self._came.notify_all()
        elif known := self._sessions.get(msgspec.json.decode(message.data, type=SessionQuestion).ek):
            await self._bus.publish(SESSIONS, msgspec.json.encode(known))

    def _keep(self, session: KeySession) -> bool:
        """Keep a session. False: its tenant has no room for it."""
        self._forget_expired()
        if session.ek in self._sessions or session.until <= self._clock():
            return True
        if not self._has_room(session):
            return False
        number, size = self._size.get(session.tenant, (0, 0))
        self._size[session.tenant] = number + 1, size + len(bytes(session.session))
        self._sessions[session.ek] = session
        heappush(self._expiring, (session.until, session.ek))
        return True

    def _has_room(self, session: KeySession) -> bool:
        number, size = self._size.get(session.tenant, (0, 0))
        return number < KEPT and size + len(bytes(session.session)) <= KEPT_BYTES

    def _forget_expired(self) -> None:
        now = self._clock()
        while self._expiring and self._expiring[0][0] <= now:
            old = self._sessions.pop(heappop(self._expiring)[1])
            number, size = self._size.pop(old.tenant)
            if number > 1:
                self._size[old.tenant] = number - 1, size - len(bytes(old.session))

"""Tokens that directories sign and PoPs take, and the keys of directories, in files."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.base.errors import ConfigError, Unauthorized
from voicepipe.call_api import TOKEN, Grant
from voicepipe.config import Config
from voicepipe.config.fleet_config import FleetConfig
from voicepipe.directory.tokens import (
    LEEWAY_S,
    VALID_S,
    Signer,
    TokenVerifier,
    audience,
    check_keys,
    key_id,
    signer,
    verified,
)
from voicepipe.directory.tokens import public_key as read_public_key

KEY = Ed25519PrivateKey.generate()
SIGNER = Signer("2026-11", KEY)
GRANT = Grant(id="call_1", tenant="acme", agents=("front-desk",), slots=4)


@dataclass
class Clock:
    """Unix seconds, as the PoP has them."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def verifier(clock: Clock | None = None) -> TokenVerifier:
    return TokenVerifier(audience("fra", 7), {"2026-11": KEY.public_key()}, clock or Clock())


def signed(grant: Grant = GRANT, pop: str = "fra", epoch: int = 7, signer: Signer = SIGNER) -> str:
    return signer.sign(grant, pop, epoch, Clock().now)


def test_a_token_says_to_its_pop_what_it_allows() -> None:
    assert verifier().read(signed()) == GRANT


def test_a_token_is_short_enough_for_an_address() -> None:
    assert len(signed()) < 500


@pytest.mark.parametrize(("pop", "epoch"), [("iad", 7), ("fra", 6)])
def test_another_pops_token_is_refused_and_one_of_an_earlier_run(pop: str, epoch: int) -> None:
    with pytest.raises(Unauthorized, match="another PoP"):
        verifier().read(signed(pop=pop, epoch=epoch))


def test_a_token_expires_by_the_pops_own_clock() -> None:
    clock = Clock()
    ours, token = verifier(clock), signed()
    clock.now += VALID_S + LEEWAY_S - 0.1
    assert ours.read(token) == GRANT
    clock.now += 0.2
    with pytest.raises(Unauthorized, match="expired"):
        ours.read(token)


def test_a_token_is_used_once() -> None:
    ours, token = verifier(), signed()
    first, second = ours.read(token), ours.read(token)
    ours.use(first)
    with pytest.raises(Unauthorized, match="used already"):
        ours.use(second)
    with pytest.raises(Unauthorized, match="used already"):
        ours.read(token)


def test_a_calls_token_still_says_whose_call_it_was_once_it_is_spent() -> None:
    clock = Clock()
    ours, token = verifier(clock), signed()
    ours.use(GRANT)
    clock.now += 3600
    assert ours.read(token, spent=True) == GRANT
    with pytest.raises(Unauthorized, match="another PoP"):
        ours.read(signed(pop="iad"), spent=True)
    with pytest.raises(Unauthorized, match="expired"):
        ours.read(signed(Grant(id="ask_1", tenant="acme", begins=False)), spent=True)


def test_what_was_used_is_forgotten_only_once_it_has_expired() -> None:
    clock = Clock()
    ours = verifier(clock)
    ours.use(GRANT)
    token = signed()
    while True:
        clock.now += 10
        ours.use(Grant(id=f"call at {clock.now}", tenant="acme"))
        with pytest.raises(Unauthorized) as refused:
            ours.read(token)
        if "expired" in str(refused.value):
            break
    for _ in range(100):
        clock.now += 10
        ours.use(Grant(id=f"call at {clock.now}", tenant="acme"))
    assert len(ours._used) < 20


def test_a_key_may_be_exchanged_while_tokens_of_the_old_one_are_about() -> None:
    new = Ed25519PrivateKey.generate()
    both = {"2026-11": KEY.public_key(), "2026-12": new.public_key()}
    ours = TokenVerifier(audience("fra", 7), both, Clock())
    assert ours.read(signed()) == ours.read(signed(signer=Signer("2026-12", new)))
    later = TokenVerifier(audience("fra", 7), {"2026-12": new.public_key()}, Clock())
    with pytest.raises(Unauthorized, match="not made by a directory"):
        later.read(signed())


def part(token: str, number: int) -> bytes:
    encoded = token.removeprefix(TOKEN).split(".")[number]
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


def forged() -> dict[str, str]:
    """Tokens that nobody with the key has signed."""
    payload = part(signed(), 1)
    call_claims = json.loads(payload)
    head, body, signature = signed().split(".")
    public = KEY.public_key().public_bytes_raw().hex()
    richer = base64.urlsafe_b64encode(payload.replace(b"acme", b"evil")).decode().rstrip("=")
    return {
        "somebody else's key": signed(signer=Signer("2026-11", Ed25519PrivateKey.generate())),
        "no signature": TOKEN + jwt.encode(call_claims, "", "none", {"kid": "2026-11"}),
        "the public key for a secret": TOKEN + jwt.encode(call_claims, public, "HS256", {"kid": "2026-11"}),
        "another tenant": f"{head}.{richer}.{signature}",
        "cut off": f"{head}.{body}",
        "no token": "vp_hello",
        "nothing": TOKEN,
        "not ASCII": TOKEN + "ä.ö.ü",
        "no claims of ours": TOKEN + jwt.encode({"aud": "fra.7"}, KEY, "EdDSA", {"kid": "2026-11"}),
        "a key that nobody has": TOKEN + jwt.api_jws.encode(payload, KEY, "EdDSA", {"kid": "x"}),
    }


@pytest.mark.parametrize("token", forged().values(), ids=forged().keys())
def test_what_no_directory_signed_is_refused(token: str) -> None:
    with pytest.raises(Unauthorized):
        verifier().read(token)


@given(st.text(), st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_no_token_breaks_a_verifier(text: str, at: int, put: bytes) -> None:
    bent = bytearray(signed().encode())
    bent[at : at + len(put)] = put
    for token in (text, TOKEN + text, bent.decode(errors="replace")):
        try:
            assert verifier().read(token) == GRANT  # Bits that base64 does not use may be bent.
        except Unauthorized:
            pass


@pytest.mark.e2e
def test_a_key_that_is_none_is_told_with_how_to_make_one(tmp_path: Path) -> None:
    (file := tmp_path / "key.pem").write_text("nothing")
    for read, command in ((read_public_key, "openssl pkey"), (signer, "openssl genpkey")):
        with pytest.raises(ConfigError, match=command):
            read(str(file))


def written(folder: Path, key: Any, password: bytes | None = None) -> tuple[str, str]:
    """The paths of a private key and of its public one."""
    how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    private, public = folder / "key.pem", folder / "key.pub.pem"
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how))
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return str(private), str(public)


def test_what_a_directory_signs_is_known_by_its_public_key(tmp_path: Path) -> None:
    private, public = written(tmp_path, Ed25519PrivateKey.generate())
    known = read_public_key(public)
    its = signer(private)
    assert its.key_id == key_id(known) and len(its.key_id) == 16
    assert verified(its.signed(b'{"call": 1}'), {its.key_id: known}, dict[str, int]) == {"call": 1}


def test_keys_of_another_kind_or_behind_a_password_are_none(tmp_path: Path) -> None:
    for key in (ec.generate_private_key(ec.SECP256R1()), Ed25519PrivateKey.generate()):
        private, public = written(tmp_path, key, b"secret")
        with pytest.raises(ConfigError, match="no Ed25519 private key without a password"):
            signer(private)
    assert read_public_key(public)
    written(tmp_path, ec.generate_private_key(ec.SECP256R1()))
    with pytest.raises(ConfigError, match="no Ed25519 public key"):
        read_public_key(public)
    with pytest.raises(ConfigError, match="directory.key: it is no Ed25519 private key"):
        signer("")


def test_a_pop_that_knows_a_directory_by_what_is_no_key_is_told_where(tmp_path: Path) -> None:
    _, public = written(tmp_path, Ed25519PrivateKey.generate())
    check_keys(Config(fleet=FleetConfig(keys=(public,))))
    with pytest.raises(ConfigError, match="^fleet.keys: .*nowhere.pem is no Ed25519 public key"):
        check_keys(Config(fleet=FleetConfig(keys=(public, str(tmp_path / "nowhere.pem")))))

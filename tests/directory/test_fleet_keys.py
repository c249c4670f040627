"""Keys of directories, in files."""

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from voicepipe.base.errors import ConfigError
from voicepipe.config import Config
from voicepipe.config.fleet_config import FleetConfig
from voicepipe.directory.fleet_keys import check_keys, key_id, signer
from voicepipe.directory.fleet_keys import public_key as read_public_key
from voicepipe.directory.tokens import verified


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

"""The authority of a fleet of one's own, and the certificates that it gives its hosts.

The keys are P-256: browsers take no Ed25519. NATS servers show each other theirs as clients, too.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

EARLY = timedelta(hours=1)
"""For clocks that are late."""
AUTHORITY_DAYS = 3650
DAYS = 397
"""Days for which a host's certificate is valid: no browser takes more of a public authority."""


def new_key() -> str:
    """A private key, as PEM."""
    made = ec.generate_private_key(ec.SECP256R1())
    kind = serialization.PrivateFormat.PKCS8
    return made.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()


def authority(key: str, name: str) -> str:
    """An authority's certificate for its own `key` (PEM), as PEM."""
    its = _loaded(key)
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    made = (
        _begun(named, named, its.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(its, hashes.SHA256())
    )
    return _pem(made)


def certificate(ca: str, ca_key: str, key: str, names: Sequence[str], address: str) -> str:
    """A host's certificate for its `key`, these names of the DNS and its IP address, by the authority `ca` (all PEM),
    as PEM. NATS servers that learn of each other from a third one dial an address, and not a name."""
    issuer, signer = x509.load_pem_x509_certificate(ca.encode()), _loaded(ca_key)
    by = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    its_address = x509.IPAddress(ip_address(address))
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    made = (
        _begun(subject, issuer.subject, _loaded(key).public_key(), DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([*map(x509.DNSName, names), its_address]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(by), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return _pem(made)


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer, subject, key, x509.random_serial_number(), now - EARLY, now + timedelta(days=days)
    ).add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _loaded(key: str) -> ec.EllipticCurvePrivateKey:
    loaded = serialization.load_pem_private_key(key.encode(), None)
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)
    return loaded


def _pem(made: x509.Certificate) -> str:
    return made.public_bytes(serialization.Encoding.PEM).decode()

"""A private authority, and certificates that it signs for servers of this machine."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class ServerCertificate(NamedTuple):
    cert: Path
    key: Path


class Authority:
    """`ca` is the file with its certificate."""

    def __init__(self, folder: Path, name: str = "private authority") -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._certificate(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0))
        (ca := folder / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
        self.ca = ca

    def certified(self, name: str = "server") -> ServerCertificate:
        """A certificate for 127.0.0.1 and localhost, with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._certificate(subject, key, x509.BasicConstraints(ca=False, path_length=None))
        files = ServerCertificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        files.cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, constraints: x509.BasicConstraints
    ) -> x509.Certificate:
        now, own = datetime.now(UTC), x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return (
            x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=2))
            .add_extension(constraints, critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own), critical=False)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
                    key_agreement=False, key_cert_sign=constraints.ca, crl_sign=constraints.ca, encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
            .sign(self._key, hashes.SHA256())
        )  # fmt: skip

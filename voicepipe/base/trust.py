"""Whose certificates are trusted where this host connects by TLS: the system's authorities, and the operator's own."""

import ssl

import httpx

from voicepipe.base.errors import ConfigError

UNKNOWN_AUTHORITY = (2, 18, 19, 20, 21)
"""OpenSSL's codes for a certificate of somebody unknown (X509_V_ERR_..., x509_vfy.h): its issuer is not there, or it is
its own."""


def trusting(context: ssl.SSLContext, ca: str, key: str = "tls.ca") -> ssl.SSLContext:
    """`context`, which also trusts the authorities in the file `ca` (PEM; empty: none). Raises ConfigError, which names
    the `key`: the file cannot be read, or holds no certificate."""
    if not ca:
        return context
    try:
        context.load_verify_locations(cafile=ca)
    except ssl.SSLError:
        raise ConfigError(f"{key}: {ca} holds no certificate; give the authority's own, in PEM") from None
    except OSError as error:
        raise ConfigError(
            f"{key}: {ca} cannot be read ({error.strerror}); give a file with the authority's certificate, in PEM"
        ) from None
    return context


def for_http(ca: str, key: str = "tls.ca") -> ssl.SSLContext | bool:
    """The `verify` of an httpx client: what httpx trusts by itself, and the authorities in `ca`, as `trusting`.
    Blocking: 20 to 50 ms."""
    return trusting(httpx.create_ssl_context(), ca, key) if ca else True


def for_sockets(ca: str) -> ssl.SSLContext:
    """For NATS and WebSockets: the system's authorities, and those in `ca`, as `trusting`. Blocking: 20 to 50 ms."""
    return trusting(ssl.create_default_context(), ca)


def check(ca: str) -> None:
    """Raises ConfigError: the file cannot be used."""
    trusting(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ca)


def refusal(error: BaseException | None, key: str = "tls.ca") -> str:
    """Why TLS does not trust the other side, out of the errors behind this one, with advice: `key` names authorities.
    Empty: the error is about something else."""
    while error:
        if isinstance(error, ssl.SSLCertVerificationError):
            said = f"its certificate is not trusted here ({error.verify_message.rstrip('.')})"
            advice = f"name the certificate of the authority that signed it as {key}"
            return f"{said}: {advice}" if error.verify_code in UNKNOWN_AUTHORITY else said
        error = error.__cause__ or error.__context__
    return ""

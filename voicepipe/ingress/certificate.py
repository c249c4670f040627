"""The certificate of a server: read again when its files change, for new connections. Those that go on keep theirs."""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable
from contextlib import suppress

from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, HttpConfig
from voicepipe.config.directory_config import DirectoryConfig

logger = logging.getLogger(__name__)

EVERY_S = 2.0
"""Seconds between two looks at the files."""

_Version = tuple[tuple[int, int, int], ...]
"""Of each file: inode, modification time in ns, size. A file that is missing has none."""


class ServerCertificate:
    """The certificate and the key that a server's configuration names. Raises ConfigError: they cannot be used."""

    def __init__(self, http: HttpConfig) -> None:
        self._files = (http.cert, http.key) if http.cert else ()
        self._seen = _version(self._files)
        self.tls = tls_context(http)
        """For the next connection; None: no TLS. A certificate of another kind in the same context would leave the old
        one there (OpenSSL has one of each kind), so each gets its own."""
        self.warning = ""
        """Why the files are not what is served, for the server's health; empty: they are."""

    def reread(self, config: Config | DirectoryConfig) -> Callable[[], None]:
        """Read the files again, as `Rereads` has it. Raises ConfigError."""
        files = (config.http.cert, config.http.key) if config.http.cert else ()
        seen, tls = _version(files), tls_context(config.http)

        def use() -> None:
            self._files, self._seen, self.tls, self.warning = files, seen, tls, ""

        return use

    async def watch(self) -> None:
        """Read the files whenever they change, until cancelled. While certificate and key do not belong together, or
        one is missing, the last good pair is served."""
        while True:
            await asyncio.sleep(EVERY_S)
            if self._files:
                await self._look(self._files)

    async def _look(self, files: tuple[str, ...]) -> None:
        seen = await asyncio.to_thread(_version, files)
        if seen == self._seen and not self.warning:
            return
        cert, key = files
        try:
            tls = await asyncio.to_thread(tls_context, HttpConfig(cert=cert, key=key))
        except ConfigError as error:
            if seen != self._seen or not self.warning:
                logger.warning("%s The last pair that could be used is served on.", error)
            problem, tls = str(error), self.tls
        else:
            problem = ""
            logger.info("the certificate in %s has changed: new connections get it", cert)
        if self._files == files:  # A reload may have come meanwhile.
            self._seen, self.tls, self.warning = seen, tls, problem


def _version(files: tuple[str, ...]) -> _Version:
    found = []
    for file in files:
        with suppress(OSError):
            stat = os.stat(file)
            found.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def tls_context(http: HttpConfig) -> ssl.SSLContext | None:
    """The TLS of a server with this certificate; None: it has none. Raises ConfigError: the files cannot be used."""
    if not http.cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(http.cert, http.key, password=lambda: "")
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"http.cert and http.key cannot be used ({error}): they name a PEM chain and its key."
        ) from None
    return context


def check_certificate(config: Config) -> None:
    """Raises ConfigError: the files that are named for TLS cannot be used."""
    tls_context(config.http)

"""Kamailio with the configuration of pops/deploy, for trunks by TLS or by UDP, and a telephone that calls by TLS."""

import asyncio
import re
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.ingress.sip.peer import Phone, opened
from tests.support.ports import free_port
from voicepipe.serving import lan

CONFIG = Path(__file__).parents[3] / "pops/deploy/kamailio.cfg"
PROGRAM = shutil.which("kamailio", path="/usr/sbin:/usr/local/sbin") or shutil.which("kamailio")
HAS_TLS = any(Path("/usr/lib").glob("*/kamailio/modules/tls.so"))
PEM = "sbc.pem"
READY_S = 30.0


@dataclass(frozen=True)
class Sbc:
    """Where one listens on loopback: TCP for TLS, UDP for the PoPs."""

    tls: int
    udp: int


@asynccontextmanager
async def kamailio(
    folder: Path, pops: Sequence[int], trunk: str = "(src_ip == 127.0.0.1)", *, by_udp: bool = False
) -> AsyncIterator[Sbc]:
    """One in front of PoPs at these UDP ports. Raises TimeoutError: it does not start."""
    sbc = Sbc(free_port(), free_port())
    pem = await asyncio.to_thread(lan.certificate, folder / PEM, ["127.0.0.1"])
    pop_list = folder / "dispatcher.list"
    lines = [f"1 sip:127.0.0.1:{port} 0 {10 - n}\n" for n, port in enumerate(pops)]
    await asyncio.to_thread(pop_list.write_text, "".join(lines))
    values = {
        "FROM_TRUNK": trunk, "LISTEN_TLS": f"tls:127.0.0.1:{sbc.tls}", "LISTEN_UDP": f"udp:127.0.0.1:{sbc.udp}",
        "TLS_CERTIFICATE": f'"{pem}"', "TLS_KEY": f'"{pem}"', "DISPATCHER_LIST": f'"{pop_list}"', "PING_S": "1",
    }  # fmt: skip
    defines = [word for name, value in values.items() for word in ("-A", f"{name}={value}")]
    defines += ["-A", "TRUNK_BY_UDP"] if by_udp else []
    assert PROGRAM
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "-f", str(CONFIG), "-DD", "-E", "-m", "32", "-M", "4", "-Y", str(folder), *defines,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    told: list[bytes] = []
    reading = asyncio.create_task(_read(process, told))
    try:
        await _ready(_answers(sbc.udp) if by_udp else _listens(sbc.tls), process, told)
        yield sbc
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), 60)
        await reading


async def _read(process: asyncio.subprocess.Process, told: list[bytes]) -> None:
    assert process.stderr
    while line := await process.stderr.readline():
        told.append(line)


async def _ready(serves: Awaitable[None], process: asyncio.subprocess.Process, told: list[bytes]) -> None:
    async with asyncio.timeout(READY_S):
        ends, ready = asyncio.create_task(process.wait()), asyncio.ensure_future(serves)
        await asyncio.wait({ends, ready}, return_when=asyncio.FIRST_COMPLETED)
        assert ready.done(), b"".join(told[-20:]).decode()
        ends.cancel()


async def _listens(port: int) -> None:
    """Until it takes connections."""
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.05)


async def _answers(port: int) -> None:
    """Until it says something by UDP."""
    async with Phone(("127.0.0.1", port)) as phone:
        await phone.insisting(phone.request("OPTIONS"), "OPTIONS", 0)


class TlsPhone(Phone):
    """Its signalling goes by TLS to `server`, whose certificate is in `folder`."""

    folder: Path

    async def open(self) -> None:
        context = await asyncio.to_thread(ssl.create_default_context, cafile=str(self.folder / PEM))
        reader, self._writer = await asyncio.open_connection(*self.server, ssl=context)
        self.port = self._writer.get_extra_info("sockname")[1]
        self.rtp, self.rtp_port = await opened(lambda data, source: self.packets.append((data, source)))
        self.ssrc, self.sent, self.transport = 4475, 0, "TLS"
        self._reading = asyncio.create_task(self._read(reader))

    def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        self.rtp.close()

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError):  # The other side has closed.
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = re.search(rb"(?i)\r\ncontent-length[ \t]*:[ \t]*(\d+)", head)
                self._sip(head + await reader.readexactly(int(found[1]) if found else 0), None)


def by_tls(sbc: Sbc, folder: Path) -> TlsPhone:
    made = TlsPhone(("127.0.0.1", sbc.tls))
    made.folder = folder
    return made

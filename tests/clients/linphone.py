"""linphone as a telephone: its console program, told what to do by lines."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import numpy as np

from tests.ingress.sip.softphone import SECONDS, WAV_HEADER, Softphone
from tests.support.ports import free_port
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler

PROGRAM = "linphonec"
RECORDED = 48_000
CONFIG = """[sip]
sip_port={own_port}
sip_tcp_port=0
sip_tls_port=0
guess_hostname=0
contact=sip:{user}@127.0.0.1
[auth_info_0]
username={user}
passwd={password}
"""
ACCOUNT = """[sip]
default_proxy=0
[proxy_0]
reg_proxy=<sip:127.0.0.1:{port}>
reg_identity=<sip:{user}@127.0.0.1:{port}>
reg_sendregister=1
"""


class Linphone(Softphone):
    """One such telephone."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process) -> None:
        super().__init__(folder)
        self._process = process

    async def registered(self) -> None:
        """Raises TimeoutError: it does not register."""
        await self.printed("^registered, identity=", asked="status register")

    async def dial(self, address: str) -> None:
        """Raises TimeoutError: nobody answers."""
        self.command(f"call {address}")
        await self.printed("Media streams established")

    def play(self, path: Path) -> None:
        self.command(f"play {path}")

    async def hang_up(self) -> None:
        self.command("terminate")
        await self.printed(r"ended \(No error\)")

    def command(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n".encode())

    async def printed(self, pattern: str, asked: str = "") -> None:
        """It printed this; `asked` is a command to repeat until then. Raises TimeoutError."""
        async with asyncio.timeout(SECONDS):
            while not re.search(pattern, await asyncio.to_thread(self.log), re.MULTILINE):
                if asked:
                    self.command(asked)
                await asyncio.sleep(0.2)

    def heard(self) -> Pcm:
        """The file's header is empty until it is closed."""
        data = (self.folder / "heard.wav").read_bytes()[WAV_HEADER:]
        return Resampler(RECORDED, RATE)(np.frombuffer(data[: len(data) & ~1], np.int16))


@asynccontextmanager
async def linphone(
    folder: Path, port: int, user: str, password: str, *, registers: bool = True
) -> AsyncIterator[Linphone]:
    """One that keeps its files in `folder`, and registers as `user` at `port` of this machine."""
    (folder / ".local/share/linphone").mkdir(parents=True)
    config = CONFIG.format(own_port=free_port(), user=user, password=password)
    config += ACCOUNT.format(port=port, user=user) if registers else ""
    (folder / "config").write_text(config)
    with (folder / "log.txt").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            PROGRAM, "-c", str(folder / "config"), cwd=folder, env={**os.environ, "HOME": str(folder)},
            stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        phone = Linphone(folder, process)
        phone.command("ipv6 disable")
        phone.command("soundcard use files")
        phone.command(f"record {folder / 'heard.wav'}")
        yield phone
    finally:
        phone.command("quit")
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 20)
        with suppress(ProcessLookupError):
            process.kill()

"""baresip as a telephone: a process of its own, told what to do by JSON over TCP."""

import asyncio
import json
import re
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from tests.ingress.sip.softphone import SECONDS, SILENCE_S, WAV_HEADER, Softphone, write
from tests.support.ports import free_port
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler

MODULES = Path("/usr/lib/baresip/modules")
CONFIG = """poll_method epoll
{listen}
audio_source aufile,{folder}/silence.wav
ausrc_srate 16000
ausrc_channels 1
module_path {modules}
snd_path {folder}
ctrl_tcp_listen 127.0.0.1:{control}
module g711.so
module g722.so
module opus.so
module aufile.so
module sndfile.so
module srtp.so
module_tmp account.so
module_app menu.so
module_app ctrl_tcp.so
"""


class Baresip(Softphone):
    """One such telephone."""

    def __init__(self, folder: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(folder)
        self._writer = writer
        self.told: list[dict[str, Any]] = []
        """Events and answers."""
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read(reader))

    async def dial(self, port: int, user: str = "front") -> None:
        """Raises TimeoutError: nobody answers."""
        self.command("dial", f"sip:{user}@127.0.0.1:{port}")
        await self.event("CALL_ESTABLISHED")

    def play(self, path: Path) -> None:
        self.command("ausrc", f"aufile,{path}")

    async def hang_up(self) -> None:
        self.command("hangup")
        await self.event("CALL_CLOSED")

    def command(self, command: str, params: str = "") -> None:
        data = json.dumps({"command": command, "params": params, "token": "t"}).encode()
        self._writer.write(b"%d:%b," % (len(data), data))

    async def event(self, kind: str) -> dict[str, Any]:
        """The first event of this kind. Raises TimeoutError."""
        async with asyncio.timeout(SECONDS):
            while True:
                for event in self.told:
                    if event.get("type") == kind:
                        return event
                self._news.clear()
                await self._news.wait()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = int((await reader.readuntil(b":"))[:-1])
                self.told.append(json.loads(await reader.readexactly(size)))
                await reader.readexactly(1)
                self._news.set()

    async def logged(self, pattern: str) -> None:
        """What it printed last says this. Raises TimeoutError."""
        async with asyncio.timeout(SECONDS):
            while not re.search(pattern, (await asyncio.to_thread(self.log))[-500:]):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    def heard(self) -> Pcm:
        """The file's header tells its length only once it is closed."""
        [path] = self.folder.glob("dump-*-dec.wav")
        data = path.read_bytes()
        channels, rate = struct.unpack_from("<HI", data, 22)
        pcm = np.frombuffer(data[WAV_HEADER : len(data) & ~3], np.int16)
        pcm = pcm[: pcm.size // channels * channels].reshape(-1, channels)[:, 0]
        return Resampler(rate, RATE)(np.ascontiguousarray(pcm))

    def close(self) -> None:
        self._reading.cancel()
        self._writer.close()


@asynccontextmanager
async def baresip(folder: Path, account: str, *, on_loopback: bool = True) -> AsyncIterator[Baresip]:
    """One that keeps its files in `folder`; `account`: its address and parameters, as baresip has them. Not
    `on_loopback`: as it is installed, it takes the network's address for its own."""
    control = free_port()
    sip = free_port()
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    await asyncio.to_thread(write, folder / "silence.wav", np.zeros(SILENCE_S * RATE, np.int16))
    files = {
        "config": CONFIG.format(
            listen=f"sip_listen 127.0.0.1:{sip}" if on_loopback else "", folder=folder, modules=MODULES, control=control
        ),
        "accounts": f"{account}\n",
        "contacts": "",
    }
    for name, text in files.items():
        await asyncio.to_thread((folder / name).write_text, text)
    log = await asyncio.to_thread((folder / "log.txt").open, "wb")
    with log:
        process = await asyncio.create_subprocess_exec(
            "baresip", "-f", str(folder), cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
        )
    phone = None
    try:
        phone = Baresip(folder, *await _connected(control))
        yield phone
    finally:
        if phone:
            phone.close()
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 60)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async with asyncio.timeout(SECONDS):
        while True:
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
            await asyncio.sleep(0.05)

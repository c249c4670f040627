"""`python -m tests.endpointing collect SET FILE [--telephone] [--rooms N]`"""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.endpointing import recordings
from tests.endpointing.heard import Gap, Listener, by_telephone
from tests.endpointing.recordings import Recording
from voicepipe import config as configs
from voicepipe.engines.fair import owned_by
from voicepipe.errors import EngineBusy


class Row(msgspec.Struct):
    id: str
    text: str
    complete: bool
    noise: str
    end_ms: float
    gaps: list[Gap]
    kind: str = ""


async def collect(source: Iterator[Recording], file: Path, narrow: bool) -> None:
    from voicepipe.config.agent_store import open_agents
    from voicepipe.running import engines_for
    done = {msgspec.json.decode(line, type=Row).id for line in file.read_text().splitlines()} if file.exists() else set()
    config = configs.load(Path("configs/cpu.toml"))
    config = msgspec.structs.replace(config, sphinx=msgspec.structs.replace(config.sphinx, stall_s=600, threads=2))
    agents = open_agents(config)
    async with engines_for(config, agents) as engines:
        with file.open("a") as out:
            queue: asyncio.Queue[Recording | None] = asyncio.Queue(2)
            n = 0
            began = time.time()
            async def work(number: int) -> None:
                nonlocal n
                while recording := await queue.get():
                    pcm = by_telephone(recording.pcm) if narrow else recording.pcm
                    with owned_by(f"c{number}"):
                        while True:
                            try:
                                gaps = await Listener(engines, narrow=narrow).hear(pcm)
                                break
                            except EngineBusy:
                                await asyncio.sleep(1)
                    row = Row(recording.id, recording.text, recording.complete, recording.noise, recording.end_ms, gaps)
                    out.write(msgspec.json.encode(row).decode() + "\n")
                    out.flush()
                    n += 1
                    if n % 20 == 0:
                        print(n, f"{(time.time() - began) / n:.2f} s each", flush=True)
            async with asyncio.TaskGroup() as group:
                for number in range(2):
                    group.create_task(work(number))
                for recording in source:
                    if recording.id not in done:
                        await queue.put(recording)
                await queue.put(None)
                await queue.put(None)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("what")
    parser.add_argument("set")
    parser.add_argument("file", type=Path)
    parser.add_argument("--telephone", action="store_true")
    parser.add_argument("--rooms", type=int, default=1)
    args = parser.parse_args()
    source = recordings.development(args.set) if args.set != "probes" else recordings.probes(rooms=args.rooms)
    asyncio.run(collect(source, args.file, args.telephone))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The callers of one region, as who has them call sees them."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from tests.fleet.caller import Order
from tests.fleet.history import Call
from tests.fleet.network import Host
from tests.fleet.polling import until
from tests.fleet.processes import Process

NICE = 10
"""Callers yield to what they measure."""


class Orders:
    """A process of callers, and where it lives."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self.folder = folder
        command = (sys.executable, "-m", "tests.fleet.callers", host.address)
        self.process = Process(host.name, command, folder / f"{host.name}.log", "callers are ready",
                               namespace=host.namespace, nice=NICE)  # fmt: skip
        self._numbers = 0

    def place(self, order: Callable[[str, str], Order]) -> "Load":
        """`order` gets a name and a file for its history."""
        self._numbers += 1
        name = f"{self.host.name}-{self._numbers}"
        made = order(name, str(self.folder / f"{name}.jsonl"))
        self.process.tell(msgspec.json.encode(made))
        return Load(made, self.process)


class Load:
    """Calls that are placed, hold, and end."""

    def __init__(self, order: Order, process: Process) -> None:
        self.order = order
        self._process = process
        self._file = Path(order.out)
        self._offset = 0
        self._up: list[str] = []
        self._calls: list[Call] = []
        self._ended = False

    def hang_up(self) -> None:
        """All of them, now and as they come."""
        self._process.tell(self.order.name.encode())

    def up(self) -> list[str]:
        """The PoPs of those that have begun so far."""
        self._read()
        return self._up

    async def begun(self, count: int, seconds: float) -> list[str]:
        """The same, once so many have. Raises TimeoutError."""
        await until(lambda: len(self.up()) >= count, seconds)
        return self.up()

    async def settled(self, seconds: float) -> None:
        """Every call has begun, or will not. Raises TimeoutError."""
        await until(lambda: len(self.up()) + self._refused() >= self.order.count, seconds)

    async def over(self, seconds: float) -> list[Call]:
        """All calls, once the last one has ended; those that have where it does not within `seconds`."""
        with suppress(TimeoutError):
            await until(self._is_over, seconds)
        assert self._process.runs, f"callers ended: {self._process.said()[-2000:]}"
        return self._calls

    def _refused(self) -> int:
        self._read()
        return sum(not call.began for call in self._calls)

    def _is_over(self) -> bool:
        self._read()
        return self._ended

    def _read(self) -> None:
        """What has been written since."""
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._offset)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]  # The last line may be half written.
        self._offset += len(whole)
        for line in whole.splitlines():
            if line.startswith(b"up "):
                self._up.append(line[3:].decode())
            elif line:
                self._calls.append(msgspec.json.decode(line, type=Call))
            else:
                self._ended = True

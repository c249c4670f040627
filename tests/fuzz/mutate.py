"""New inputs from known ones: by bytes, by lines where they are text, by values where they are JSON."""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.fuzz.target import Target

NUMBERS = (0, 1, -1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64, -(2**31))
NESTED = (b"[" * 3000, b'{"a":' * 3000, b"(" * 500)
TEXTS = (
    "",
    "\0",
    "\n",
    "\r\n\r\n",
    "%s%n",
    "../../..",
    "é",
    "\ud800",
    "\u202e",
    "𝟘",
    "١٢",
    "a" * 300,
    "NaN",
    "1e999",
    " ",
)
MOST_CHANGES = 5


class Mutator:
    """Makes a target's inputs. Deterministic: by the seed of `random` and by the inputs that were kept."""

    def __init__(self, target: Target, random: Random) -> None:
        self._random = random
        self._target = target
        self.pool = target.corpus()

    def __call__(self) -> bytes:
        """The next input."""
        random, target = self._random, self._target
        if target.generate and random.random() < 0.4:
            data = target.generate(random)
            if random.random() < 0.5:
                return data[: target.largest]
        else:
            data = random.choice(self.pool)
        for _ in range(random.randint(1, MOST_CHANGES)):
            data = self._changed(data)
        return data[: target.largest]

    def _changed(self, data: bytes) -> bytes:
        way = self._random.random()
        if way < 0.3 and data[:1] in (b"{", b"[") and (changed := _json(data, self._random)) is not None:
            return changed
        if way < 0.6 and data.count(b"\n") > 1:
            return self._lines(data)
        return self._random.choice(_BYTES)(data, self._random, self._target.words, self.pool)

    def _lines(self, data: bytes) -> bytes:
        random = self._random
        lines = data.splitlines(keepends=True)
        at, other = random.randrange(len(lines)), random.randrange(len(lines))
        if random.random() < 0.3 and lines[at][:1] == b"{" and (changed := _json(lines[at], random)) is not None:
            return b"".join([*lines[:at], changed.replace(b"\n", b" "), b"\n", *lines[at + 1 :]])
        match random.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines[at:at] = [lines[other]] * random.choice((1, 1, 2, 50))
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                donor = random.choice(self.pool).splitlines(keepends=True)
                lines.insert(at, random.choice(donor) if donor else b"\n")
            case _:
                change = random.choice(_BYTES)
                lines[at] = change(lines[at], random, self._target.words, self.pool)
        return b"".join(lines)


# --- bytes ------------------------------------------------------------------------------------------------------

Change = Callable[[bytes, Random, Sequence[bytes], Sequence[bytes]], bytes]


def _span(data: bytes, random: Random) -> tuple[int, int]:
    """A piece of `data`, mostly a short one."""
    at = random.randint(0, len(data))
    return at, min(len(data), at + random.choice((1, 1, 2, 4, 8, random.randint(1, 64), len(data))))


def _flip(data: bytes, random: Random, words: Sequence[bytes], pool: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _byte(data: bytes, random: Random, words: Sequence[bytes], pool: Sequence[bytes]) -> bytes:
    at, end = _span(data, random)
    return data[:at] + random.randbytes(min(end - at, 8)) + data[end:]


def _number(data: bytes, random: Random, words: Sequence[bytes], pool: Sequence[bytes]) -> bytes:
    """A number that code is wrong about, written or in 1, 2 or 4 bytes."""
    at = random.randint(0, len(data))
    number = random.choice(NUMBERS)
    if random.random() < 0.5:
        digits = next((i for i in range(at, len(data)) if data[i : i + 1].isdigit()), at)
        end = digits
        while data[end : end + 1].isdigit():
            end += 1
        return data[:digits] + str(number).encode() + data[end:]
    size = random.choice((1, 2, 4))
    return data[:at] + (number % (1 << 8 * size)).to_bytes(size, random.choice(("big", "little"))) + data[at + size :]


def _word(data: bytes, random: Random, words: Sequence[bytes], pool: Sequence[bytes]) -> bytes:
    at, end = _span(data, random)
    if random.random() < 0.02:
        return data[:at] + random.choice(NESTED) + data[at:]
    known = (
        random.choice(words) if words and random.random() < 0.7 else random.choice(TEXTS).encode(errors="surrogatepass")
    )
    return data[:at] + known + data[at if random.random() < 0.5 else end :]


def _cut(data: bytes, random: Random, words: Sequence[bytes], pool: Sequence[bytes]) -> bytes:
    at, end = _span(data, random)
    return data[:at] + data[end:]


def _repeat(data: bytes, random: Random, words: Sequence[bytes], pool: Sequence[bytes]) -> bytes:
    at, end = _span(data, random)
    return data[:at] + data[at:end] * random.choice((2, 3, 10, 300)) + data[end:]


def _end(data: bytes, random: Random, words: Sequence[bytes], pool: Sequence[bytes]) -> bytes:
    return data[: random.randint(0, len(data))]


def _splice(data: bytes, random: Random, words: Sequence[bytes], pool: Sequence[bytes]) -> bytes:
    other = random.choice(pool)
    return data[: random.randint(0, len(data))] + other[random.randint(0, len(other)) :]


_BYTES: tuple[Change, ...] = (_flip, _flip, _byte, _number, _number, _word, _word, _cut, _repeat, _end, _splice)


# --- JSON -------------------------------------------------------------------------------------------------------


def _json(data: bytes, random: Random) -> bytes | None:
    """With another value somewhere; None: it is no JSON."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places = list(_places(tree))
    if places:
        container, key = random.choice(places)
        match random.randrange(4):
            case 0:
                del container[key]
            case 1:
                other, other_key = random.choice(places)
                container[key] = json.loads(json.dumps(other[other_key]))
            case 2 if isinstance(container, dict):
                container[random.choice(TEXTS)] = container.pop(key)
            case _:
                container[key] = _value(container[key], random)
    try:
        return json.dumps(tree, ensure_ascii=random.random() < 0.5).encode(errors="surrogatepass")
    except RecursionError:
        return None


def _places(tree: Any, depth: int = 0) -> Any:
    """Every container and key of a value inside."""
    if depth < 20 and isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield tree, key
            yield from _places(value, depth + 1)


def _value(value: Any, random: Random) -> Any:
    match random.randrange(7):
        case 0:
            return random.choice(NUMBERS)
        case 1:
            return random.choice(TEXTS)
        case 2:
            return random.choice((None, True, False, [], {}, 0.5, 1e308, float("nan"), float("inf")))
        case 3:
            return [value] * random.choice((1, 2, 40))
        case 4:
            return {"type": value}
        case 5 if isinstance(value, str):
            at = random.randint(0, len(value))
            return value[:at] + random.choice(TEXTS) + value[at:]
        case _:
            for _ in range(random.choice((1, 5, 60))):
                value = [value]
            return value

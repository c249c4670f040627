"""A model's file by its address, for `voicepipe models pull` alone: a PoP never waits for another server.

httpx reads HTTPS_PROXY itself. A broken connection, or a run that was ended, goes on where it broke.
"""

from collections.abc import Callable
from pathlib import Path

import httpx

from voicepipe.base.errors import EngineMissing
from voicepipe.engines.weights.hub_fetch import Unreachable, check_room

Progress = Callable[[int, int], None]
"""Bytes that are here, and of how many; 0: the server does not say."""
TIMEOUT = httpx.Timeout(30.0, connect=10.0)
"""From one piece to the next, and to connect."""


def fetch(url: str, target: Path, progress: Progress) -> None:
    """Fetch it beside `target`, which is there once it is whole. Raises EngineMissing, Unreachable."""
    part = target.with_name(f"{target.name}.part")
    try:
        _whole(url, part, progress)
        part.replace(target)
    except OSError as error:
        raise EngineMissing(f"{target} cannot be written: {error.strerror}") from None


def _whole(url: str, part: Path, progress: Progress) -> None:
    """Fetch the file, and go on after a broken connection, as long as each one has brought more of it."""
    while True:
        before = _size(part)
        try:
            return _rest(url, part, progress)
        except httpx.HTTPStatusError as error:
            said = f"{error.response.status_code} {error.response.reason_phrase}"
            raise Unreachable(f"{url} cannot be fetched: its server answers {said}") from None
        except httpx.HTTPError as error:
            if _size(part) <= before:
                raise Unreachable(
                    f"{url} cannot be fetched: {str(error) or type(error).__name__}; check the network (HTTPS_PROXY) "
                    "and run this again: it goes on with what is missing"
                ) from None


def _rest(url: str, part: Path, progress: Progress) -> None:
    """Fetch the part of the file that `part` lacks. Raises httpx.HTTPError, OSError, EngineMissing."""
    here = _size(part)
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={here}-"} if here else {})}
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=TIMEOUT) as answer:
        if here and answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink()  # There is no more of it: it is whole, or another file's.
            return _rest(url, part, progress)
        answer.raise_for_status()
        here = here if answer.status_code == httpx.codes.PARTIAL_CONTENT else 0
        rest = int(answer.headers.get("Content-Length", 0))
        part.parent.mkdir(parents=True, exist_ok=True)
        check_room(part.parent, "the file needs", rest, "make room")
        with part.open("ab" if here else "wb") as file:
            for data in answer.iter_bytes():
                file.write(data)
                progress(here + answer.num_bytes_downloaded, here + rest if rest else 0)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0

"""The built-in pages. They are small and read once: a request for one takes no thread, no file and no look at the disk,
and there is no need for ranges."""

import hashlib
import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route


class LargeFile(FileResponse):
    """The response with a large file, all of it: a hundred ranges of it would take ten times as long."""

    max_ranges = 1


def routes(folder: Path) -> list[BaseRoute]:
    """A route for each file, and "/" for index.html. Reads all of them."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    served: list[BaseRoute] = [Route(f"/{path.relative_to(folder).as_posix()}", page(path)) for path in files]
    index = folder / "index.html"
    return [Route("/", page(index)), *served] if index in files else served


def page(path: Path) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a file, with its content at this moment."""
    content = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    kind = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"', "Cache-Control": "no-cache"}

    async def endpoint(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    return endpoint

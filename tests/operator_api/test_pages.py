"""The built-in pages: small, read once, and of no use to who asks for them in pieces."""

import httpx
import pytest

from tests.ingress.fake_pop import FakePop, serving


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css", "/dashboard", "/vendor/plotly.min.js"])
async def test_pages_are_served_and_not_in_pieces(path: str) -> None:
    ranges = "bytes=" + ",".join(f"{2 * n}-{2 * n}" for n in range(100))
    async with serving(FakePop()) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        whole = await client.get(path)
        assert whole.status_code == 200
        pieces = await client.get(path, headers={"Range": ranges})
        assert "byteranges" not in pieces.headers["content-type"]


async def test_pages_say_what_they_are() -> None:
    kinds = {"/": "text/html", "/app.js": "text/javascript", "/style.css": "text/css", "/icon.svg": "image/svg+xml"}
    async with serving(FakePop()) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        for path, kind in kinds.items():
            assert (await client.get(path)).headers["content-type"].startswith(kind)


async def test_a_page_that_has_not_changed_is_not_sent_again() -> None:
    async with serving(FakePop()) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        first = await client.get("/app.js")
        again = await client.get("/app.js", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert (await client.head("/app.js")).headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize("path", ["/nothing", "/" + "a/" * 3000, "/../pop.py", "/%2e%2e/pop.py", "/web/"])
async def test_there_are_no_others(path: str) -> None:
    async with serving(FakePop()) as address, httpx.AsyncClient(base_url=f"http://{address}") as client:
        assert (await client.get(path)).status_code == 404

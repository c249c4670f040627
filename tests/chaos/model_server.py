"""A language model's server in a process of its own: `python -m tests.chaos.model_server PORT`."""

import asyncio
import sys

from starlette.responses import HTMLResponse, Response, StreamingResponse

from tests.chaos.switches import Switches
from tests.engines.openai_server import Event, Json, Server, refusal, said, serving

WORDS = ("We ", "open ", "at ", "noon, ", "every ", "day ", "of ", "the ", "week ", "but ", "not ", "on ", "Sunday.")
BETWEEN_S = 0.15


def answer(switches: Switches, body: Json) -> list[Event] | Response:
    """The same sentence each time, over two seconds; or what a switch says."""
    if switches.on("model-refuses"):
        return refusal(500, "CUDA error: an illegal memory access was encountered")
    if switches.on("model-page"):
        return HTMLResponse("<html>502 Bad Gateway</html>")
    if switches.on("model-garbage"):
        return StreamingResponse(
            iter((b'data: {"choices": [{"delta": {"content": "We \xff\xc0', b"\n\ndata: null\n\n"))
        )
    if body.get("max_tokens") == 1:
        return said("We")
    events = said(*WORDS)
    slowed: list[Event] = [1.5] if switches.on("model-slow") else []
    for event in events:
        slowed += [event, BETWEEN_S]
    return slowed


async def serve(port: int) -> None:
    switches = Switches.inherited()
    async with serving(Server(lambda body: answer(switches, body)), port):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))

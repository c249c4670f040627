"""A server of the OpenAI kind for tests: real HTTP, real server-sent events, and replies that a test writes."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Json = dict[str, Any]
Event = Json | str | float
"""A chunk, raw bytes of the stream as text, or seconds to wait."""
DONE = "data: [DONE]\n\n"


def chunk(finish_reason: str | None = None, **delta: Any) -> Json:
    """As in OpenAI's reference: https://platform.openai.com/docs/api-reference/chat-streaming."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "nano", "choices": [choice]}


def said(*pieces: str) -> list[Event]:
    """A reply of text: the role alone first, the end with its reason, the usage in a chunk without choices."""
    usage = chunk() | {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}
    return [
        chunk(role="assistant", content=""),
        *(chunk(content=piece) for piece in pieces),
        chunk("stop"),
        usage,
        DONE,
    ]


def called(call_id: str | None, name: str, *arguments: str, index: int = 0) -> list[Event]:
    """A tool call: the id and the name first, then the arguments in pieces."""
    first = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": index, "function": {"arguments": piece}} for piece in arguments]
    return [chunk(role="assistant", content=None, tool_calls=[first]), *(chunk(tool_calls=[more]) for more in rest)]


def refusal(status: int, message: str) -> Response:
    """As vLLM words it."""
    return JSONResponse({"error": {"message": message, "type": "Error", "param": None, "code": status}}, status)


class Server:
    """What it was asked, and what it answers."""

    def __init__(self, answer: Callable[[Json], list[Event] | Response]) -> None:
        self.answer = answer
        self.models = ["nano"]
        self.asked: list[Json] = []
        """Bodies of the requests for a reply, in order."""
        self.headers: list[dict[str, str]] = []
        self.clients: set[tuple[str, int] | None] = set()
        """Where their connections came from."""
        self.abandoned = 0
        """Requests that the client ended before they were answered."""
        self.app = Starlette(
            routes=[Route("/v1/models", self._models), Route("/v1/chat/completions", self._complete, methods=["POST"])]
        )

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]})

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        self.clients.add(request.client and (request.client.host, request.client.port))
        if body["model"] not in self.models:
            return refusal(404, f"The model `{body['model']}` does not exist.")
        events = self.answer(body)
        return (
            events
            if isinstance(events, Response)
            else StreamingResponse(self._stream(events), media_type="text/event-stream")
        )

    async def _stream(self, events: list[Event]) -> AsyncIterator[str]:
        over = False
        try:
            for event in events:
                if isinstance(event, float):
                    await asyncio.sleep(event)
                else:
                    yield event if isinstance(event, str) else f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
            over = True
        finally:
            self.abandoned += not over


@asynccontextmanager
async def serving(server: Server, port: int = 0) -> AsyncIterator[str]:
    """The base URL while it runs. Connections that are open when the context ends are dropped."""
    listener = socket.create_server(("127.0.0.1", port))
    web = uvicorn.Server(uvicorn.Config(server.app, lifespan="off", log_config=None, timeout_graceful_shutdown=0))
    async with asyncio.TaskGroup() as group:
        group.create_task(web._serve([listener]))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        web.should_exit = True

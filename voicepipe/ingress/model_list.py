"""The agents as a list of models: GET /v1/models and /v1/models/{id}, as OpenAI lists models, and GET /v1/voices."""

import time
from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.call_api import PopApi
from voicepipe.ingress.access import AccessControl, UnknownModel
from voicepipe.ingress.api_keys import Caller

Row = Mapping[str, str | int]


class ModelList:
    """The HTTP endpoints that list agents as OpenAI lists models."""

    def __init__(self, pop: PopApi, access: AccessControl) -> None:
        self._pop = pop
        self._access = access
        self._created = int(time.time())
        """Unix seconds for every agent: it has no date of its own, and the convention requires one."""

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/models", self.models),
            Route("/v1/models/{model_id}", self.model),
            Route("/v1/voices", self.voices),
        ]

    async def models(self, request: Request) -> Response:
        """The agents that may be called, the PoP's default first. `lacks`: why one cannot answer, and what helps."""
        return _list(self._models(self._access.caller(request)))

    async def model(self, request: Request) -> Response:
        """One of the agents. Raises UnknownModel: only calls take an unknown name for the default agent."""
        wanted = request.path_params["model_id"]
        for row in self._models(self._access.caller(request)):
            if row["id"] == wanted:
                return JSONResponse(row)
        raise UnknownModel(f"There is no agent {wanted[:200]!r} for this key: GET /v1/models lists those there are.")

    async def voices(self, request: Request) -> Response:
        """The voices, which are the same for every caller."""
        self._access.caller(request)
        return _list([{"id": voice, "language": language} for voice, language in self._pop.voices().items()])

    def _models(self, who: Caller) -> list[Row]:
        mine = [who.agent] if who.agent else who.tenant.agents
        return [
            {
                "id": agent.name,
                "object": "model",
                "created": self._created,
                "owned_by": "voicepipe",
                "voice": agent.voice,
                "language": agent.language,
                **({"lacks": lacks} if (lacks := self._pop.lacks(agent)) else {}),
            }
            for agent in self._pop.agents()
            if not mine or agent.name in mine
        ]


def _list(rows: Sequence[Row]) -> Response:
    return JSONResponse({"object": "list", "data": rows})

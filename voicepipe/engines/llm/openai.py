"""The language model by a server of the OpenAI kind on this host: vLLM's own, SGLang, llama.cpp, TensorRT-LLM.

By httpx and not by OpenAI's SDK: we need one request of it, and none of its retries, which no caller can wait for.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

import httpx

from voicepipe.agent import Agent
from voicepipe.base.errors import EngineBusy, EngineDead, EngineError, EngineStalled, RequestRefused
from voicepipe.base.tasks import ended, supervised
from voicepipe.base.trust import for_http, refusal
from voicepipe.base.web_answer import AT_A_TIME, PLAIN, coding, pieces, whole
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Answering, Delta, Message, Prompt
from voicepipe.engines.hosting.failures import HELLO
from voicepipe.engines.hosting.liveness import Liveness
from voicepipe.engines.llm.agent_models import AgentModels
from voicepipe.engines.llm.event_stream import LONGEST_EVENT, EventStream
from voicepipe.engines.llm.openai_request import RefusedFields, request
from voicepipe.engines.llm.openai_wire import LONGEST_ANSWER, StreamedReply, complaint, model_names
from voicepipe.engines.llm.spoken_text import Habits

log = logging.getLogger(__name__)
TRIAL = Prompt((Message("user", HELLO),))
KEEP_ALIVE_S = 4.0
"""An unused connection is given up before the servers do, which is after 5 s: none closes under a request."""
CONNECT_S = 2.0
CHAT = "/chat/completions"
NOT_TAKEN = {400, 413, 422}
"""Statuses of a server that is well and cannot use a request: too long, a tool that it cannot read."""
FULL = {429, 503}
"""Statuses of a server that takes no more requests, or none yet."""
PROBE_S = 1.0
"""Seconds between two questions to the server whether it is there."""
ENDS_S, CLOSES_S = 0.5, 0.05
"""So long the end of the stream is waited for once the server has said why the reply ends, and once it has said that no
more comes. Some leave the connection open."""
THOUGHTS = (
    "have it read them (vLLM and SGLang: --reasoning-parser; llama.cpp: --reasoning-format), or set "
    "openai.thinks_first = true if nothing opens them"
)
CALLS = "have it read them (vLLM and SGLang: --tool-call-parser; llama.cpp: --jinja); until then no tool is called so"


class _Again(RequestRefused):
    """The server refused a field; it may take the request without that."""


class OpenAiLlm:
    """A language model behind an OpenAI-compatible server, or several, where agents name their own. One pooled client
    serves all calls. Implements `base.Llm`, `base.CanBreak` and `base.ChoosesAgents`.

    The server may go and come back: it is asked every second whether it is there, and every reply tries it anew. `ca`:
    as `trust.trusting`.
    """

    def __init__(self, config: OpenAiConfig, key: str = "", ca: str = "") -> None:
        self._ca = ca
        self._config = config
        self._key = key
        self._url = config.base_url.rstrip("/")
        self._server = f"The language model's server {self._url}"
        self._model = config.model
        self._client: httpx.AsyncClient | None = None
        self._liveness = Liveness()
        self._refusals = defaultdict[str, RefusedFields](partial(RefusedFields, self._server, config.body))
        """By model: one server may have several kinds."""
        self._agent_models = AgentModels()
        self._habits = Habits(self._server, THOUGHTS, CALLS, thinks_first=config.thinks_first)
        self._odd_ends = False
        """The server ends replies without saying so."""
        self._watching: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self._liveness.alive

    @property
    def name(self) -> str:
        """The model and its server, for people. The model is known once this has started."""
        return f"{self._model} at {self._url}"

    def answering(self, agent: Agent) -> Answering:
        return Answering(f"{agent.model or self._model} at {self._url}", self._agent_models.lacks(agent))

    async def start(self) -> None:
        """Find the model and have it say one token. Raises EngineError."""
        if not self._url:
            raise EngineError("openai.base_url is empty: set it to the server's address, as http://127.0.0.1:8000/v1.")
        if self._client is None:
            self._client = await asyncio.to_thread(self._connected)
        self._model = self._model or await self._only_model()
        await self.warm(TRIAL)
        self._watching = self._watching or asyncio.create_task(
            supervised("watching the language model's server", self._watch)
        )

    async def close(self) -> None:
        watching, self._watching = self._watching, None
        await ended(watching)
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _watch(self) -> None:
        was_alive = True
        while True:
            await asyncio.sleep(PROBE_S)
            self._liveness.gone = self._liveness.gone or not await self._there()
            if self._liveness.needs_trial:
                with suppress(EngineError):
                    await self.warm(TRIAL)
                self._liveness.tried()
            if self.alive != was_alive:
                was_alive = self.alive
                log.warning("%s %s", self._server, "is back" if was_alive else "does not work; no calls are taken")

    async def _there(self) -> bool:
        """Whether the server says anything at all."""
        assert self._client
        try:
            async with asyncio.timeout(self._config.timeout_ms / 1000):
                async with self._client.stream("GET", f"{self._url}/models") as response:
                    listed = await whole(response, LONGEST_EVENT)  # so that the connection can be used again
        except (TimeoutError, httpx.HTTPError):
            return False
        if names := model_names(listed):
            self._agent_models.lists(names)
        return True

    async def warm(self, prompt: Prompt) -> None:
        """Have the server read the prompt, for its prefix cache. A model that one agent names, and that is not to be
        had, is that agent's trouble alone: it is logged, and `answering` says so."""
        agent = prompt.agent
        try:
            await self._have_read(prompt)
        except EngineError as error:
            if agent is None or self._named(prompt) == self._model:
                raise
            if not isinstance(error, EngineBusy | EngineDead | EngineStalled):
                self._agent_models.refused(agent.model, str(error))
            log.error("agent %s is not warmed up with its own model, %s: %s", agent.name, agent.model, error)

    def _named(self, prompt: Prompt) -> str:
        """The model that answers the prompt."""
        return (prompt.agent and prompt.agent.model) or self._model

    async def _have_read(self, prompt: Prompt) -> None:
        try:
            await self._read(replace(prompt, max_tokens=1))
        except RequestRefused:  # Some take no limit as low.
            await self._read(prompt)

    async def _read(self, prompt: Prompt) -> None:
        async with aclosing(self.generate(prompt)) as deltas:
            async for _ in deltas:
                pass

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """The reply as the server streams it, then its tool calls. Closing it closes the connection: servers abort.

        Raises with the first item: EngineBusy (no token within `timeout_ms`, or the server refuses more),
        RequestRefused (it does not take this prompt). With any item: EngineStalled (no further token within
        `timeout_ms`), EngineDead (it is not there, or broke off), EngineError. Not once the server has said that the
        reply is complete.
        """
        most = max(self._config.max_tokens, prompt.max_tokens or 0)
        reply = StreamedReply(most, self._habits, [tool.name for tool in prompt.tools])
        begun = False
        async with aclosing(self._events(prompt)) as events:
            while True:
                within_s = CLOSES_S if reply.done else ENDS_S if reply.over else self._config.timeout_ms / 1000
                try:
                    async with asyncio.timeout(within_s):
                        event = await self._liveness.next(events, within_s)
                except (TimeoutError, EngineError) as error:
                    if reply.over:
                        break
                    raise self._late(begun) if isinstance(error, TimeoutError) else error from None
                if event is None:
                    break
                begun = True
                try:
                    deltas = reply.take(event)
                except EngineError:
                    self._liveness.failed()
                    raise
                self._liveness.moved()
                for delta in deltas:
                    yield delta
        self._ended(reply, begun)
        self._agent_models.answered(self._named(prompt))
        for delta in reply.rest():
            yield delta

    def _ended(self, reply: StreamedReply, begun: bool) -> None:
        """The stream is over. Raises EngineError: no reply has come of it."""
        if not begun:
            self._liveness.failed()
            raise EngineError(f"{self._server} does not stream replies: look whether openai.base_url is right.")
        if not reply.over and not reply.began:
            self._liveness.failed()
            raise EngineError(f"{self._server} ended a reply before its first word: {reply.strange or 'see its log'}")
        if not reply.over and reply.strange:
            self._liveness.failed()
            raise EngineError(f"{self._server} broke off a reply: {reply.strange}")
        if not reply.over and not self._odd_ends:
            self._odd_ends = True
            log.warning("%s ends replies without a finish_reason; they are taken for complete", self._server)
        self._liveness.worked()

    async def _events(self, prompt: Prompt) -> AsyncGenerator[bytes, None]:
        while True:
            body = request(self._config, self._model, prompt, self._refusals[self._named(prompt)].fields)
            try:
                async with aclosing(self._answered(body)) as events:
                    async for event in events:
                        yield event
                return
            except _Again:
                pass

    async def _answered(self, body: dict[str, object]) -> AsyncGenerator[bytes, None]:
        stream = EventStream()
        async with self._asked("POST", CHAT, body) as response:
            if how := coding(response):
                self._liveness.failed()
                raise EngineError(f"{self._server} compresses its replies ({how}): have it or its proxy not do so.")
            async with aclosing(pieces(response)) as found:
                async for piece in found:
                    for number, event in enumerate(stream.feed(piece), 1):
                        yield event
                        if number % AT_A_TIME == 0:
                            await asyncio.sleep(0)
            for event in stream.rest():
                yield event

    async def _only_model(self) -> str:
        found = await self._models()
        if len(found) != 1:
            has = f"has several models, name one of them: {', '.join(found)}" if found else "lists no model, name it"
            raise EngineError(f"openai.model is empty, and {self._url} {has}.")
        return found[0]

    async def _models(self) -> list[str]:
        try:
            async with asyncio.timeout(self._config.timeout_ms / 1000), self._asked("GET", "/models") as response:
                names = model_names(await whole(response, LONGEST_EVENT))
                self._agent_models.lists(names)
                return names
        except TimeoutError:
            raise self._late(begun=False) from None

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: dict[str, object] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """The server's answer, begun and good; whatever else happens to it is an EngineError."""
        if self._client is None:
            raise EngineError("The language model's client is closed.")
        try:
            async with self._client.stream(method, self._url + path, json=body) as response:
                if not response.is_success:
                    self._judge(response.status_code, body or {})
                    raise await self._refused(response, path, body or {})
                yield response
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self._liveness.gone = True
            if why := refusal(error):
                raise EngineDead(f"{self._server}: {why}.") from None
            raise EngineDead(
                f"No language model's server answers at {self._url}: start it, or set openai.base_url."
            ) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise EngineError(f"openai.base_url, {self._url!r}, is no address: {error}.") from None
        except httpx.HTTPError as error:
            self._liveness.failed()
            raise EngineDead(f"{self._server} broke off ({type(error).__name__}): see its log.") from None

    def _judge(self, status: int, body: dict[str, object]) -> None:
        """A server that refuses requests may be well, also one that lacks an agent's own model. One that has too much
        to do, or is loading its model, answers others or it does not work."""
        if status in NOT_TAKEN or (status == 404 and body.get("model", self._model) != self._model):
            self._liveness.moved()
        elif status not in FULL:
            self._liveness.failed()

    async def _refused(self, response: httpx.Response, path: str, body: dict[str, object]) -> EngineError:
        """What a status other than 2xx means, for whoever runs the PoP."""
        answer, status = await whole(response, LONGEST_ANSWER), response.status_code
        said = complaint(answer)
        if status in (401, 403):
            key = self._config.api_key
            todo = (
                f"look at the key in {key}" if key else "name its key's variable or file in openai.api_key_env or _file"
            )
            return EngineError(f"{self._server} does not let us in: {todo} ({said}).")
        if status == 404:
            return EngineError(await self._not_found(path, said, str(body.get("model", self._model))))
        if status in FULL:
            return EngineBusy(f"{self._server} is full ({said}): let it take more, or lower pop.slots.")
        kind = RequestRefused if status in NOT_TAKEN and path == CHAT else EngineError
        if kind is RequestRefused and self._refusals[str(body["model"])].learn(body, answer):
            kind = _Again
        return kind(f"{self._server} refused the request with status {status}: {said}")

    async def _not_found(self, path: str, said: str, model: str) -> str:
        found = [] if path == "/models" else await self._models()
        if found and model not in found:
            key = "openai.model" if model == self._model else "the agent's model"
            return f"{self._server} has no model {model!r}; set {key} to one of: {', '.join(found)}."
        return f"{self._server} has no {path} ({said}): openai.base_url mostly ends in /v1."

    def _late(self, begun: bool) -> EngineError:
        waited = f"for {self._config.timeout_ms} ms (openai.timeout_ms)"
        if begun:
            return EngineStalled(f"{self._server} began a reply and then sent nothing {waited}.")
        return EngineBusy(f"{self._server} has sent no token {waited}: look whether it is overloaded.")

    def _connected(self) -> httpx.AsyncClient:
        """In a thread: reading the certificate store takes 20-50 ms. Proxies of the environment are not asked."""
        return httpx.AsyncClient(
            headers=PLAIN | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_S),
            trust_env=False,
            verify=for_http(self._ca),
        )

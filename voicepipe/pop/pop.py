"""One PoP: admission, state, draining. `running.py` has its life."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import msgspec

from voicepipe import __version__
from voicepipe.agent import Agent
from voicepipe.base import call_ids
from voicepipe.base.errors import ConfigError, Draining, EngineDown, PopFull, PopLate, TenantFull
from voicepipe.base.places import place_of
from voicepipe.base.takeover import TakeoverParts
from voicepipe.call.call import Call
from voicepipe.call.call_context import CallServices
from voicepipe.call.recogniser_timing import time_recogniser
from voicepipe.call.tts_cache import TtsCache
from voicepipe.call_api import (
    NO_ANSWER,
    CallControl,
    CallSlot,
    DoorKind,
    HookAnswer,
    HookRun,
    Observer,
    Refusal,
    Tenant,
    Tokens,
)
from voicepipe.call_settings import NOWHERE, CallSettings, Origin
from voicepipe.config import Config
from voicepipe.config.agent_store import AgentStore, hooks_of
from voicepipe.config.credentials import keys_of, operator_keys
from voicepipe.config.phone_config import PHONES
from voicepipe.config.rereads import Rereads, Use
from voicepipe.conversation.events import CallEvent, ReplyDone
from voicepipe.directory.report import Condition, EditionState
from voicepipe.engines.base import CountsDecoders, Engines
from voicepipe.health import Health, Status
from voicepipe.ingress.api_keys import Tenants, is_key, may_scrape
from voicepipe.ingress.loopback_only import phone_kinds, sip_contact, unreached
from voicepipe.line import Line
from voicepipe.observe.call_followers import UNTRACED, CallFollower, CallTracer
from voicepipe.observe.calls import LiveCall
from voicepipe.observe.cost import CostMeter
from voicepipe.observe.dashboard import Dashboard
from voicepipe.observe.failing_turns import FailingTurns
from voicepipe.observe.metrics import Metrics
from voicepipe.observe.process import ProcessWatch
from voicepipe.observe.recent_turns import RecentTurnCounts
from voicepipe.observe.tally import HourlyTally
from voicepipe.pop.admission import WINDOW_S, Admission, AnsweredTurn, CallCounts, engines_ms, is_broken
from voicepipe.pop.agent_settings import ColleagueSettings, settings_of
from voicepipe.pop.before_call import BeforeCall
from voicepipe.pop.call_drain import CallDrain
from voicepipe.pop.calls_by_tenant import CallsByTenant
from voicepipe.pop.hooks import HookCaller
from voicepipe.pop.incoming_calls import IncomingCalls, with_session
from voicepipe.pop.membership import Membership
from voicepipe.pop.predecessor import Predecessor
from voicepipe.pop.prepared_agents import PreparedAgents
from voicepipe.pop.successor import Successor
from voicepipe.pop.turn_hooks import TurnHooks
from voicepipe.records.records import Records
from voicepipe.sizing.prediction import latency_ms
from voicepipe.tools.tool_runner import ToolRunner

log = logging.getLogger(__name__)
FEWEST_LATE = 8
"""Fewest calls that can make the event loop late. With fewer something else does, and to refuse a caller would not help
the others."""
LOADS_S = 5.0
"""Seconds after which a call's load on the event loop shows."""
LOOK_S = 1.0
COMPARED_S = WINDOW_S
"""Seconds of a call in which its turns are compared with the prediction: then that depends on other turns, and other
calls have begun."""


@dataclass(frozen=True, slots=True)
class _AdmittedCall:
    """A call that was admitted, with its slot."""

    pop: "Pop"
    owner: str
    watched: LiveCall
    predicted_ms: float
    """Turn latency, 95th percentile, as predicted just before."""
    admitted_at: float
    """The monotonic second."""
    call_id: str

    def hook_has_run(self, run: HookRun) -> None:
        self.watched.hook = run

    def open(self, line: Line, settings: CallSettings, observer: Observer) -> CallControl:
        pop, call_id = self.pop, self.call_id
        pop.turn_hooks.follow(call_id, settings, self.owner)
        told = settings.told_variables
        self.watched.answered(call_id, line, time.time(), settings.origin, told, settings.agent.name)

        def emit(event: CallEvent) -> None:
            self._answered(call_id, event)
            self.watched.note(event, time.time())
            observer(event)

        colleagues = ColleagueSettings(settings, datetime.now(UTC))

        def colleague(name: str) -> CallSettings | None:
            agent = pop.takes_over(name, self.watched.tenant)
            return colleagues.of(agent) if agent else None

        services = CallServices(partial(pop.tools.begin, tenant=self.watched.tenant), colleague)
        call = Call(call_id, line, settings, pop.engines, pop.config, services, emit, time.monotonic)
        if pop.membership:
            pop.membership.round_trips.began(call_id, line)
        return call

    def ended(self, reason: str) -> None:
        if self.pop.membership and self.watched.facts:
            self.pop.membership.round_trips.ended(self.watched.facts.id)
        self.watched.ended(reason, time.time())

    def _answered(self, call_id: str, event: CallEvent) -> None:
        """Compare a turn with the prediction, by the engines' time alone, since only that is predicted."""
        took_ms = self.pop.note(self.owner, call_id, event)
        if took_ms is not None and time.monotonic() - self.admitted_at < COMPARED_S:
            self.pop.metrics.prediction_check(latency_ms(took_ms) / self.predicted_ms)


class Pop:
    """One point of presence: it admits calls, and knows its own state. Implements `call_api.PopApi`."""

    def __init__(
        self,
        config: Config,
        agents: AgentStore,
        engines: Engines,
        tools: ToolRunner,
        records: Records | None = None,
        traces: CallTracer = UNTRACED,
        takeover_parts: TakeoverParts | None = None,
        predecessor: Predecessor | None = None,
    ) -> None:
        self.config = config
        self.tools = tools
        self.watch = ProcessWatch()
        self.metrics = Metrics(config.pop, self.health, traces)
        self._recent, self._hour = RecentTurnCounts(self.watch.lag_p99_ms), HourlyTally()
        self._failing = FailingTurns(time.monotonic)
        self.records = records
        cost = CostMeter(config.pop, time.monotonic)
        self.metrics.others.append(cost.read)
        hooks = HookCaller(tools)
        self._before_call = BeforeCall(hooks, config.pop.id, self.takes_over)
        self.incoming = IncomingCalls(hooks, config.pop.id)
        self.turn_hooks = TurnHooks(hooks, config.pop.id)
        followers: list[CallFollower] = [self.metrics, cost, self._recent, self._hour, self._failing, self.turn_hooks]
        if records:
            records.after_call = hooks.tell_record
            followers.append(records)
            self.metrics.others.append(records.read_metrics)
        self.dashboard = Dashboard(config.pop, self.health, followers=followers, redaction=config.records,
                                   traces=traces, cost=cost.so_far)  # fmt: skip
        if records:
            records.deleted.append(self.dashboard.forget)
        self.serving = asyncio.Event()
        """Set by the HTTP server once it listens."""
        self.takeover_parts = takeover_parts or TakeoverParts()
        self._calls = CallsByTenant(self.takeover_parts)
        lock = records.lock if records else None
        self.successor = Successor(self.takeover_parts, lambda: self.config, self.end_calls, lock)
        """Starts the process that replaces this one."""
        self._predecessor = predecessor
        self.membership: Membership | None = None
        """None: no directory sends calls here."""
        self.edition: Callable[[], EditionState] | None = None
        """The edition of the fleet's agents, routes and tenants that it uses; None: it takes none."""
        self.tts_cache = TtsCache(engines.tts, short=config.ladder.first_phrase == "short")
        self.engines = replace(engines, made_ahead=self.tts_cache)
        self.tts_cache.learn(agents)
        self._agents = agents
        self.prepared = PreparedAgents(
            agents, engines, self.tts_cache, lambda: self.config, records=records is not None
        )
        self._tenants = Tenants(keys_of(config.tenants), "PoP")
        self._operator_keys = operator_keys(config.http, keys_of(config.tenants))
        self.rereads = Rereads[Config]()
        self.rereads.join(self._reread)
        self.rereads.warn_of(lambda: agents.warning)
        self._admitted_at = -math.inf
        """The monotonic second of the latest admission."""
        self._admission = Admission(config.pop.slots, config.pop.budget_ms, alone=not config.is_shared)
        self._down: dict[str, float] = {}
        """Engines that do not work, and the monotonic second since when."""
        self._drain = CallDrain(self._over, lambda: self.calls, self._drain_s)

    async def use(self, config: Config, agents: AgentStore) -> None:
        """Use other agents, routes and tenants; live calls keep what they began with. What else differs in `config`
        is for `rereads`, or read at each use. Raises ConfigError: a tenant's key cannot be read; then nothing has
        changed."""
        owners = await asyncio.to_thread(keys_of, config.tenants)
        await asyncio.to_thread(self._agents.become, agents)
        self.config = config
        self._tenants.become(owners)
        self._admission.alone = not config.is_shared
        if self.records:
            self.records.hooks = partial(hooks_of, config, self._agents)

    @property
    def tokens(self) -> Tokens | None:
        return self.membership

    @property
    def predecessor(self) -> Predecessor | None:
        return None if self._predecessor is None or self._predecessor.gone.is_set() else self._predecessor

    def _reread(self, config: Config) -> Use:
        """The operator's keys, as `Rereads` has it."""
        keys = operator_keys(config.http, keys_of(config.tenants))

        def use() -> None:
            self._operator_keys = keys

        return use

    def agent(self, name: str | None) -> Agent:
        agent = self._agents.get(name or self.config.pop.default_agent)
        if agent is None:
            raise ConfigError(f"There is no agent {name!r}; there are: {', '.join(self._agents.names())}.")
        return agent

    def agents(self) -> Sequence[Agent]:
        return sorted(self._agents, key=lambda agent: agent.name != self.config.pop.default_agent)

    def settings(self, agent: Agent, origin: Origin = NOWHERE, said: HookAnswer = NO_ANSWER) -> CallSettings:
        answers = self._agents.get(said.agent) or agent
        colleagues = self._agents if answers.hand_over else ()
        settings = settings_of(answers, origin, said, datetime.now(UTC), colleagues)
        return with_session(settings, said.session) if said.session else settings

    async def ask_hook(
        self, slot: CallSlot, agent: Agent, origin: Origin, door: DoorKind, limit_ms: int | None = None
    ) -> HookAnswer:
        if agent.hooks.before_call:
            return await self._before_call.ask(slot, agent, origin, door, limit_ms)
        if agent.hooks.incoming_call and door in PHONES:
            return await self.incoming.ask(slot, agent, origin, limit_ms)
        return NO_ANSWER

    def takes_over(self, name: str, tenant: str) -> Agent | None:
        """The agent of this name, if it can take over a call of this tenant's now."""
        agent = self._agents.get(name)
        theirs = next((each.agents for each in self.config.tenants if each.name == tenant), ())
        return agent if agent and name in (theirs or (name,)) and not self.lacks(agent) else None

    def lacks(self, agent: Agent) -> str:
        return self.prepared.answering(agent).lacks

    def voices(self) -> Mapping[str, str]:
        return self.engines.tts.voices()

    def voice_for(self, asked: str, language: str = "") -> str:
        return self.engines.tts.voice_for(asked, language)

    def tenant(self, key: str | None) -> Tenant:
        return self._tenants.tenant(key)

    def viewer(self, key: str | None) -> str | None:
        known = self._operator_keys.operator
        if not self._tenants or (known and key and is_key(known, key)):
            return None
        return self.tenant(key).name

    def may_scrape(self, key: str | None) -> bool:
        return may_scrape(self._tenants, self._operator_keys, key)

    @contextmanager
    def admit(self, tenant: Tenant, agent: Agent, replaced: CallSlot | None = None) -> Iterator[_AdmittedCall]:
        predicted_ms = self._check(tenant, replaced)
        self._admitted_at = time.monotonic()
        self._calls.began(tenant.name)
        try:
            with self.dashboard.watched(tenant.name, agent.name) as watched:
                call_id = call_ids.new(self.config.pop.id)
                yield _AdmittedCall(self, tenant.name, watched, predicted_ms, self._admitted_at, call_id)
        finally:
            self._calls.ended(tenant.name)

    def refused(self, refusal: Refusal) -> None:
        self.dashboard.refused(refusal)
        self.metrics.refused(refusal)
        self._hour.refused(refusal)

    def _check(self, tenant: Tenant, replaced: CallSlot | None) -> float:
        """Turn latency in ms, 95th percentile, with one more call. Raises Refused: there is no slot for it, even
        without the call that it replaces."""
        if self._drain.has_begun:
            raise Draining("This PoP is being shut down and takes no new calls; try another one.")
        if not self.engines.alive:
            raise EngineDown("An engine of this PoP does not work at present; try another PoP, or again soon.")
        mine, all_calls = self._calls.of(tenant.name), self._calls.all
        if replaced:
            mine, all_calls = mine - (replaced.owner == tenant.name), all_calls - 1
        if all_calls >= self.config.pop.slots:
            raise PopFull(f"All {self.config.pop.slots} slots of this PoP are taken; try again later, or another PoP.")
        if (predicted := self._predicted_ms(tenant.name, CallCounts(all_calls, mine))) > (
            budget := self.config.pop.budget_ms
        ):
            raise PopLate(
                f"One more call would be answered after {predicted:.0f} ms, over this PoP's budget of {budget} ms; "
                "try again later, or another PoP."
            )
        if self._lags(all_calls):
            raise PopLate(
                f"The event loop of this PoP is {self.watch.lag_now_ms():.0f} ms late with {all_calls} calls; "
                f"{self._allowed_lag_ms:g} ms are allowed now (pop.loop_lag_ms). Its processor serves no more: try "
                "again later, or another PoP."
            )
        if tenant.slots is not None and mine >= tenant.slots:
            raise TenantFull(f"All {tenant.slots} slots of tenant {tenant.name} are taken; end a call first.")
        return predicted

    def _lags(self, calls: int) -> bool:
        """Whether the event loop is late because of the number of calls."""
        return calls >= FEWEST_LATE and self.watch.lag_now_ms() > self._allowed_lag_ms

    @property
    def _allowed_lag_ms(self) -> float:
        """Half as much after a call has begun: a crowd that comes at once would all be admitted before the first of
        them shows."""
        begins = time.monotonic() - self._admitted_at < LOADS_S
        return self.config.pop.loop_lag_ms / (2 if begins else 1)

    @property
    def calls(self) -> int:
        """Calls in progress, with those of the process before this one."""
        return self._calls.all

    @property
    def calls_elsewhere(self) -> int:
        """Calls that go on in the process before this one."""
        return self._calls.elsewhere

    @property
    def predicted_ms(self) -> float:
        """Turn latency, 95th percentile, with one more call of a tenant that has none."""
        return self._predicted_ms(None, CallCounts(self.calls, 0))

    def _predicted_ms(self, tenant: str | None, calls: CallCounts) -> float:
        return self._admission.predicted_ms(time.monotonic(), calls, tenant)

    def note(self, tenant: str, call_id: str, event: CallEvent) -> float | None:
        """Process an event of a call of this tenant's. Returns the engines' time in ms, if it is a turn that shows
        that."""
        took_ms = engines_ms(event, self._failed_ms) if isinstance(event, ReplyDone) else None
        if isinstance(event, ReplyDone) and took_ms is not None:
            turn = AnsweredTurn(time.monotonic(), tenant, call_id, took_ms, is_broken(event))
            self._admission.note(turn, CallCounts(self.calls, self._calls.of(tenant)))
        return took_ms

    @property
    def _failed_ms(self) -> float:
        """The time that counts for an answer that did not come."""
        return max(self.config.ladder.fallback_ms, self.config.pop.budget_ms)

    def health(self) -> Health:
        now = time.monotonic()
        return Health(
            status=self.status,
            warning=self.rereads.warning,
            down={name: round(now - since) for name, since in self._look().items()},
            restarts=self.engines.restarts(),
            calls=self.calls,
            predicted_ms=round(self.predicted_ms),
            decoders=sum(engine.decoders_in_use for engine in self.engines.all() if isinstance(engine, CountsDecoders)),
            **msgspec.structs.asdict(self.watch.vitals()),
        )

    def condition(self) -> Condition:
        """The condition for reports to directories."""
        pop, fleet, status = self.config.pop, self.config.fleet, self.status
        return Condition(
            status=status,
            slots=pop.slots,
            calls=self.calls,
            predicted_ms=round(self.predicted_ms),
            budget_ms=pop.budget_ms,
            region=pop.region,
            zone=fleet.zone,
            place=place_of(fleet.place),
            url=fleet.url.rstrip("/"),
            kinds=(*fleet.kinds, *phone_kinds(self.config)),
            sip=sip_contact(self.config),
            agents={agent.name: agent.language for agent in self._agents},
            incomplete=self.prepared.incomplete(),
            model=self.config.engines.llm,
            version=pop.version or __version__,
            share=self._failing.share(lets_in=status in ("ok", "full")),
            weight=fleet.weight,
            price_per_hour=pop.price_per_hour,
            keep_days=self.config.records.keep_days if self.records else 0,
            recent=self._recent.figures(),
            edition=self.edition() if self.edition else None,
            hour=self._hour.tally(),
        )

    def _look(self) -> dict[str, float]:
        """Check which engines are down, and since when."""
        self._down = {name: self._down.get(name, time.monotonic()) for name in self.engines.down()}
        return self._down

    @property
    def status(self) -> Status:
        """The PoP's status: "ok" while a new tenant's call would be admitted."""
        if self._drain.has_begun:
            return "draining"
        if not self.serving.is_set():
            return "starting"
        if not self.engines.alive:
            return "engine_down"
        if self.calls >= self.config.pop.slots:
            return "full"
        late = self.predicted_ms > self.config.pop.budget_ms or self._lags(self.calls)
        return "late" if late else "ok"

    async def drain(self) -> None:
        """Take no new calls; returns when the last one has ended, here and in the process before this one, or
        `pop.drain_ms` after this was first asked for."""
        self._drain.has_begun = True
        self.successor.withdraw()
        if self.membership:
            self.membership.reporter.report_now()
        await self._drain.wait()

    def end_calls(self) -> None:
        """Drain no longer: the calls that go on are ended."""
        self._drain.give_up()

    def _drain_s(self) -> float:
        """Seconds for which calls may go on. Where another process takes the new ones, nobody waits for their end."""
        ms = self.config.pop.drain_ms
        return (max(ms, self.config.limits.call_ms) if self.takeover_parts.is_handed_over else ms) / 1000

    async def _over(self) -> None:
        await self._calls.none_here.wait()
        if before := self.predecessor:
            await before.gone.wait()

    async def dismissed(self) -> None:
        """Returns when an operator orders this PoP to drain and to exit, or another process has taken over."""
        await (self.membership.dismissed if self.membership else self.successor.taken_over).wait()

    async def watch_engines(self) -> None:
        """Check the engines regularly, so that it is known since when one is down."""
        while True:
            await asyncio.sleep(LOOK_S)
            self._look()

    async def time_recogniser(self) -> None:
        """Measure the recogniser once. A scripted one would take the measurement for its first caller."""
        if self.config.engines.asr != "scripted":
            await time_recogniser(self.engines, lambda: self.calls > 0)

    def log_what_is_missing(self) -> None:
        """Log what is missing: an address for telephones, a language model or a voice for agents."""
        if said := unreached(self.config):
            log.warning("%s", said)
        self.prepared.log_what_is_missing()

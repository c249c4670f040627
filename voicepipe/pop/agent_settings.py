"""The settings with which an agent answers one call: its texts are filled in with the values of this call."""

import logging
from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from voicepipe.agent import Agent
from voicepipe.call_api import HookAnswer
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.conversation.prompt import quoted
from voicepipe.conversation.variables import filled, moment_of, secret_names, values_of, zone

log = logging.getLogger(__name__)
MOST_NAMED = 5
"""Names that a line of the log has at most."""


def settings_of(
    agent: Agent, origin: Origin, said: HookAnswer, now: datetime, colleagues: Iterable[Agent] = ()
) -> CallSettings:
    """The settings of a call from there that begins `now` (with a time zone, whichever). `said`: the answer of the
    agent's hook; `colleagues`: agents that may take the call over. What is a secret for one is one for all."""
    unknown = sorted(said.variables.keys() - agent.variables.keys())
    if unknown and not agent.hand_over:  # Whoever takes the call over may have them.
        log.warning("agent %s: its hook gives variables that its file's [variables] does not list; they are left out: "
                    "%s", agent.name, ", ".join(map(quoted, unknown[:MOST_NAMED])))  # fmt: skip
    now = now.astimezone(zone(agent.time_zone))
    values = values_of(agent, said.variables)
    its = filled(agent, values, origin, now)
    if lost := agent.transfer.keys() - its.transfer.keys():
        log.warning("agent %s: with the values of this call nobody can be called at transfer.%s, so it is left out",
                    agent.name, " and transfer.".join(sorted(lost)))  # fmt: skip
    settings = CallSettings.of(_as_said(its, said), origin, values)
    secrets = secret_names(agent).union(*map(secret_names, colleagues if agent.variables else ()))
    return replace(settings, began=moment_of(now), secret_variables=secrets, given=said.variables,
                   written_instructions=agent.instructions)  # fmt: skip


def _as_said(agent: Agent, said: HookAnswer) -> Agent:
    """The agent with the texts that its hook, or another agent's, has given. They are taken as they are: what a hook
    repeats of its caller names no variable."""
    if said.greeting is not None and said.greeting != agent.greeting:
        agent = replace(agent, greeting=said.greeting)
    if said.instructions:
        agent = replace(agent, instructions=f"{agent.instructions}\n\n{said.instructions}".strip())
    return agent


class ColleagueSettings:
    """The settings with which other agents go on with a call. Each prompt that offers a hand-over asks for them, so
    they are made once."""

    def __init__(self, first: CallSettings, began: datetime) -> None:
        """`first`: those with which the call began; `began`: when, with a time zone."""
        self._first = first
        self._began = began
        self._made = {first.agent.name: first}

    def of(self, agent: Agent) -> CallSettings:
        """Values that the hook gave hold for this agent, too. A live call keeps each agent as it was when first asked
        for."""
        if agent.name not in self._made:
            given = {name: value for name, value in self._first.given.items() if name in agent.variables}
            self._made[agent.name] = settings_of(agent, self._first.origin, HookAnswer(variables=given), self._began)
        return self._made[agent.name]

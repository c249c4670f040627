"""The models of one server that agents name as their own: which of them it does not have, as far as is known. Pure."""

from collections.abc import Sequence

from voicepipe.agent import Agent


class AgentModels:
    """The models that a server lists, and those that it refused to agents.

    A server's list alone proves nothing: some have models that they do not list. So a model is lacking once the server
    has refused it, until it answers with it or lists it anew.
    """

    def __init__(self) -> None:
        self.listed: Sequence[str] = ()
        self._refused: dict[str, str] = {}
        """By the model's name: what was wrong."""

    def lists(self, names: Sequence[str]) -> None:
        """Take the server's list as it is now."""
        for name in {*names} - {*self.listed}:
            self._refused.pop(name, None)
        self.listed = names

    def refused(self, model: str, why: str) -> None:
        self._refused[model] = why

    def answered(self, model: str) -> None:
        self._refused.pop(model, None)

    def lacks(self, agent: Agent) -> str:
        """Why the agent's callers cannot be answered, and what helps; empty: they can be."""
        why = self._refused.get(agent.model, "")
        return f"Agent {agent.name} names a model of its own, and is not answered: {why}" if why else ""

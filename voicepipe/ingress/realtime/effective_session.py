"""The session with which a call of the convention begins."""

from typing import Any

from voicepipe.agent import Agent, CallSettings
from voicepipe.ingress.doors import decoded
from voicepipe.ingress.keys import Caller
from voicepipe.ingress.realtime.items import fresh_id
from voicepipe.ingress.realtime.rights import Rights
from voicepipe.ingress.realtime.session import Session


def effective_session(agent: Agent, who: Caller, expires_at: int = 0) -> tuple[Session, CallSettings]:
    """The session and settings with which a call begins. Raises WireError."""
    asked = decoded(who.session, dict[str, Any], "session")
    settings = CallSettings.of(agent)
    before = Session.of(settings, id=fresh_id("sess"), expires_at=expires_at)
    session = permitted(Rights(frozenset(agent.locked)), before, asked, agent)
    return session, session.settings(settings)


def permitted(rights: Rights, before: Session, asked: dict[str, Any], agent: Agent) -> Session:
    """The session with what is asked for. Raises WireError, also where part of it is locked."""
    session, refused = rights.session(before, before.updated(asked), agent)
    if refused:
        raise refused[0]
    return session

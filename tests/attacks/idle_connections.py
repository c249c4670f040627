"""1,200 TCP connections on which nothing is ever said."""

from tests.attacks.strangers import Streams, answered, keeps_open
from tests.attacks.target import Attack, Target

CONNECTIONS = 1200


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await keeps_open(target, seconds, CONNECTIONS, says_nothing)


async def says_nothing(streams: Streams, until: float) -> None:
    """Until the server ends it."""
    await answered(streams[0], until)


ATTACK = Attack("idle_connections", "1,200 connections on which nothing is said", run, by_stranger=True)

"""INVITEs of strangers."""

from tests.attacks.sip_messages import STRANGERS, invite, pour
from tests.attacks.target import Attack, Target

PER_S = 1000


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await pour(target, seconds, STRANGERS, PER_S, lambda host, number: invite(host))


ATTACK = Attack("sip_invites", f"{PER_S} INVITEs a second from 200 addresses", run, by_stranger=True)

"""INVITEs that bear the address of a trunk, as anybody can send them by UDP: nobody ever acknowledges their answers."""

from tests.attacks.bench.pop import CARRIER
from tests.attacks.sip_messages import invite, pour
from tests.attacks.target import Attack, Target

PER_S = 100


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    await pour(target, seconds, [CARRIER], PER_S, lambda host, number: invite(host))


ATTACK = Attack(
    "sip_forged_trunk", f"{PER_S} INVITEs a second in a trunk's name, never acknowledged", run, by_stranger=True
)

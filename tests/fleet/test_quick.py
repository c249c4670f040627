"""The short form of `make chaos`: a fleet of real processes on loopback, whose parts fail one after another.

Bounds are generous, since machines are slow at times; `make chaos` holds the fleet to those that are promised.
"""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pytest

from tests.directory.nats_server import needs_nats
from tests.fleet import faults
from tests.fleet.checker import Bounds
from tests.fleet.crowd import crowded
from tests.fleet.losses import most_nats_killed, region_killed
from tests.fleet.network import Loopback
from tests.fleet.pushes import pushed
from tests.fleet.rig import Plan, Rig, running
from tests.fleet.scale import Outcome, Scale
from tests.fleet.strangers import strangers
from tests.fleet.upgrades import keys_replaced, upgraded

pytestmark = [needs_nats, pytest.mark.e2e]

POPS = {"fra": "eu", "lhr": "eu", "iad": "us", "nrt": "ap"}
SLOTS = 6
QUICK = Scale(
    Bounds(died_s=8.0, drained_s=8.0, cut_s=30.0),
    per_second=6.0,
    set_ups=24,
    dead_s=2.0,
    cut_s=5.0,
    paused_s=10.0,
    hold_s=(0.2, 0.6),
    patience_s=30.0,
    healed_s=3.0,
    up_s=120.0,
    least=0.9,
    slack_s=60.0,
)
LONGER = QUICK._replace(dead_s=10.0, set_ups=84)
"""A PoP is dead, or drains, for longer than it may be named."""
UPGRADE = QUICK._replace(per_second=4.0, least=1.0)
"""Nobody is refused, so there is room for all though a PoP of four is away."""
IMPATIENT = QUICK._replace(patience_s=10.0, dead_s=12.0)
"""By UDP nobody is told that a directory is dead: it is waited for, for less long than it is dead."""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Its processes serve."""
    folder = tmp_path_factory.mktemp("fleet")
    try:
        network = Loopback(folder)
    except OSError as error:
        pytest.skip(str(error))
    with running(Plan(POPS, SLOTS), folder, network) as made:
        yield made


@pytest.mark.parametrize(
    ("fault", "scale"),
    [
        (faults.pops_killed, LONGER),
        (partial(faults.pops_killed, kind="sip"), LONGER),
        (partial(faults.pops_killed, kind="twilio"), LONGER),
        (partial(faults.pops_killed, kind="telnyx"), LONGER),
        (faults.drained, LONGER),
        (faults.directory_killed, QUICK),
        (partial(faults.directory_killed, kind="sip"), IMPATIENT),
        (partial(faults.directory_killed, kind="twilio"), QUICK),
        (partial(faults.directory_killed, kind="telnyx"), QUICK),
        (faults.nats_killed, QUICK),
        (most_nats_killed, QUICK),
        (faults.region_cut_off, QUICK),
        (region_killed, LONGER._replace(per_second=3.0)),
        (faults.pop_paused, QUICK),
        (strangers, QUICK),
        (partial(crowded, crowd=34, runs=1, most=float("inf")), QUICK),
        (faults.zone_dead, QUICK),
        (pushed, QUICK),
        (upgraded, UPGRADE),
        (keys_replaced, UPGRADE),
    ],
    ids=[
        "pop-killed", "pop-killed-sip", "pop-killed-twilio", "pop-killed-telnyx", "drain", "directory-killed",
        "directory-killed-sip", "directory-killed-twilio", "directory-killed-telnyx", "nats-killed", "most-nats-killed",
        "region-cut-off", "region-killed",
        "pop-paused", "strangers", "crowd", "zone-dead", "push", "upgrade", "keys",
    ],
)  # fmt: skip
async def test_a_fleet_keeps_its_promises(
    rig: Rig, fault: Callable[[Rig, Scale], Awaitable[Outcome]], scale: Scale
) -> None:
    outcome = await fault(rig, scale)
    assert outcome.broken == [], outcome

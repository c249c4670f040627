"""What a call sounds like, by its network."""

import pytest

from voicepipe.line import NetworkQuality
from voicepipe.observe.metrics import mos


@pytest.mark.parametrize(
    ("network", "least", "most"),
    [
        (NetworkQuality(loss_percent=0), 4.3, 4.5),  # G.711 without loss: 4.4
        (NetworkQuality(loss_percent=1, jitter_ms=5, rtt_ms=60), 4.1, 4.4),
        (NetworkQuality(loss_percent=5, jitter_ms=20, rtt_ms=100), 3.4, 4.0),
        (NetworkQuality(loss_percent=20), 1.5, 2.8),
        (NetworkQuality(loss_percent=0, rtt_ms=1000), 2.0, 3.0),
        (NetworkQuality(loss_percent=100, rtt_ms=4000), 1.0, 1.0),
    ],
)
def test_it_falls_as_the_network_gets_worse(network: NetworkQuality, least: float, most: float) -> None:
    found = mos(network)
    assert found is not None and least <= found <= most


def test_of_a_network_that_nobody_knows_nothing_is_said() -> None:
    assert mos(NetworkQuality()) is None


def test_more_loss_never_sounds_better() -> None:
    grades = [mos(NetworkQuality(loss_percent=loss)) or 0 for loss in range(0, 101, 5)]
    assert grades == sorted(grades, reverse=True)

"""Which ports are tried for a call."""

import errno

import pytest

from voicepipe.rtp.ports import candidates, taken


@pytest.mark.parametrize("ports", [(0, 0), (4000, 4000), (4000, 4101), (4001, 4100), (1, 65_535)])
@pytest.mark.parametrize("pairs", [False, True])
def test_ports_to_try_are_of_the_range(ports: tuple[int, int], pairs: bool) -> None:
    first, last = ports
    for port in candidates(ports, pairs=pairs):
        assert first <= port <= last - pairs if first else port == 0
        assert not pairs or port % 2 == 0


@pytest.mark.parametrize("ports", [(4000, 4000), (4000, 4101), (4001, 4100), (1, 65_535)])
def test_every_port_of_the_range_is_tried_once_from_another_one_on_each_time(ports: tuple[int, int]) -> None:
    first, last = ports
    assert sorted(candidates(ports)) == list(range(first, last + 1))
    pairs = [port for port in range(first, last) if port % 2 == 0]
    assert sorted(candidates(ports, pairs=True)) == pairs
    if len(pairs) > 1:
        assert len({next(iter(candidates(ports, pairs=True))) for _ in range(200)}) > 1


@pytest.mark.parametrize(
    ("number", "another"),
    [(errno.EADDRINUSE, True), (errno.EACCES, True), (errno.EADDRNOTAVAIL, False), (errno.EMFILE, False)],  # fmt: skip
)
def test_another_port_helps_only_where_the_port_was_the_reason(number: int, another: bool) -> None:
    assert taken(OSError(number, "so")) is another
    of_uvloop = OSError("it has no number itself")
    of_uvloop.__cause__ = OSError(number, "so")
    assert taken(of_uvloop) is another

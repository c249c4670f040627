"""Which calls were streamed before: the latest ones, in memory that does not grow."""

from voicepipe.ingress.telephony.twilio import LatestIds


def test_the_latest_are_known_and_older_ones_forgotten() -> None:
    ids = LatestIds(3)
    assert "CA0" not in ids
    for number in range(5):
        ids.add(f"CA{number}")
        assert f"CA{number}" in ids
    assert [f"CA{number}" in ids for number in range(6)] == [False, False, True, True, True, False]

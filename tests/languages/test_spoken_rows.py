"""Numbers, dates, times, money, telephone numbers, units and abbreviations of each whole language but English, against
rows that were written without a look at the forms; the kind "edge" was added for what these missed."""

import json
from importlib import resources
from typing import NamedTuple

import pytest

from voicepipe.base.words import plain
from voicepipe.languages.speakable import speakable

AT_LEAST = 0.98


class SpokenRow(NamedTuple):
    written: str
    accepted: str | list[str]
    """What is said for it; several where people say it in several ways."""
    kind: str

    def wrong(self, tag: str) -> str:
        """What is said instead; empty: it is right. Capitals and marks do not count."""
        said = speakable(self.written, tag)
        accepted = [self.accepted] if isinstance(self.accepted, str) else self.accepted
        return "" if plain(said) in map(plain, accepted) else f"{self.written} -> {said}"


@pytest.mark.parametrize("tag", ["de", "fr", "es", "it"])
def test_what_is_written_is_said_as_people_say_it(tag: str) -> None:
    text = resources.files(f"tests.languages.{tag}").joinpath("spoken.json").read_text("utf-8")
    rows = [SpokenRow(*row) for row in json.loads(text)]
    wrong = [said for row in rows if (said := row.wrong(tag))]
    assert len(rows) >= 100 and len(wrong) <= (1 - AT_LEAST) * len(rows), "\n".join(wrong)

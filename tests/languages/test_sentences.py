"""Does a caller's turn end here, by the words alone? For each language of which a file is written.

The sentences, and their beginnings up to a pause, were written by who did not know the rules. Those of "development"
are among the ones that ends are learned from (`sentences.txt`), the held-out ones are not. Of German and French the
first two sets that were held out were measured while the rules were worked on; the third for the first time once they
stood.
"""

import json
from itertools import product
from pathlib import Path

import pytest

from voicepipe.languages.known import LANGUAGES, language_of
from voicepipe.turn.endpoint import EndpointConfig, Endpointer, Evidence

FOLDER = Path(__file__).parent
BY_FILE = sorted(tag for tag in LANGUAGES if (FOLDER / tag / "sentences.json").exists())
LONG_MS, SHORT_MS = 800, 300
AIM = 0.95, 0.9, 0.85
"""Share of the pairs that are in order; of the begun ones that are waited for; of the whole ones that are answered."""
MISSED = {
    ("de", "held_out"): (0.95, 0.88, 0.85),
    ("de", "second_held_out"): (0.95, 0.88, 0.85),
    ("fr", "held_out"): (0.95, 0.86, 0.85),
}
"""Where the aim is missed as yet: it must not become worse. Most of these begun ones could be whole sentences."""


def sentences(tag: str) -> dict[str, list[tuple[str, bool]]]:
    """(text, complete?) by the set's name."""
    return json.loads((FOLDER / tag / "sentences.json").read_text())  # type: ignore[no-any-return]


def test_every_language_with_rules_has_sentences() -> None:
    assert {*BY_FILE, "en"} == set(LANGUAGES)


@pytest.mark.parametrize(("tag", "part"), [(tag, part) for tag in BY_FILE for part in sentences(tag)])
def test_the_evidence_tells_whole_sentences_from_begun_ones(tag: str, part: str) -> None:
    end = Endpointer(EndpointConfig(), turn=language_of(tag).turn)
    known = sentences(tag)[part]
    assert len(known) >= 200
    judged = [(end.log_odds(Evidence(text))[0], end.judge(Evidence(text)).required_ms, whole) for text, whole in known]
    wholes, begun = ([(odds, ms) for odds, ms, is_whole in judged if is_whole is kind] for kind in (True, False))
    ordered = sum((whole > other) + 0.5 * (whole == other) for (whole, _), (other, _) in product(wholes, begun))
    least_ordered, least_waited, least_answered = MISSED.get((tag, part), AIM)
    assert ordered / (len(wholes) * len(begun)) >= least_ordered
    assert sum(ms >= LONG_MS for _, ms in begun) / len(begun) >= least_waited, "who has begun is waited for"
    assert sum(ms <= SHORT_MS for _, ms in wholes) / len(wholes) >= least_answered, "who has finished is answered"

"""The pages' figures of hosts are what `voicepipe plan` answers."""

import pytest

from latency_probes.tables import FIGURES
from tests.sizing import planned
from tests.support.paths import ROOT


@pytest.mark.parametrize("file", planned.FILES)
def test_figures_are_those_of_the_command(file: str) -> None:
    assert planned.text(file) == (FIGURES / file).read_text(), (
        "run: python -m tests.sizing.planned && python -m latency_probes.tables"
    )


@pytest.mark.parametrize("arguments", [*planned.COMPARED.values(), planned.PRICED])
def test_the_page_names_the_command_of_its_table(arguments: str) -> None:
    assert f"\n.venv/bin/voicepipe plan {arguments}\n" in (ROOT / "pops" / "gpu.md").read_text()

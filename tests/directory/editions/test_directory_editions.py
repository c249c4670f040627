"""What a directory begins with; one proposal, and what hosts say to it."""

import asyncio
from pathlib import Path

import pytest

from tests.directory.pushing import RULED, TENANTS, WITH_KEY
from voicepipe.base.errors import ConfigError
from voicepipe.config.directory_config import DirectoryConfig, DirectorySection
from voicepipe.directory.editions.directory_editions import SAYS_NOTHING, VERDICTS_S, ProposalRound, begun, store_of
from voicepipe.directory.editions.edition import Edition

pytestmark = pytest.mark.virtual_time


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every host has them."""
    monkeypatch.setenv("HARBOUR_KEY", "k-harbour")
    monkeypatch.setenv("OPS_KEY", "k-ops")
    return monkeypatch


def test_a_directory_begins_with_the_newest_edition_whose_rules_are_still_good(
    tmp_path: Path, keys: pytest.MonkeyPatch
) -> None:
    config = DirectoryConfig(directory=DirectorySection(editions=str(tmp_path)), http=WITH_KEY)
    store = store_of(config)
    assert store
    for edition in (
        Edition(1, RULED, 1.0),
        Edition(2, {**RULED, "fleet.toml": TENANTS.replace("HARBOUR", "OTHER")}, 2.0),
    ):
        store.keep(edition)
        store.use(edition)
    its = begun(config, store)
    assert its.edition and its.edition.number == 1 and its.config.tenants and its.problem.startswith("edition 2: ")
    keys.delenv("HARBOUR_KEY")
    with pytest.raises(ConfigError, match="None of the editions in .* can be begun with"):
        begun(config, store)


HOSTS = {"fra", "lhr", "directory second"}


async def over(its: ProposalRound, heard: set[str]) -> tuple[tuple[str, ...], float]:
    """Who has fallen silent, and after how long it was over."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    return await its.over(lambda: heard), round(loop.time() - began, 3)


async def test_it_is_over_once_all_have_spoken() -> None:
    its = ProposalRound(HOSTS)
    for after_s, host in enumerate(sorted(HOSTS), 1):
        asyncio.get_running_loop().call_later(after_s, its.said, host, "")
    assert await over(its, HOSTS) == ((), 3)
    assert its.lines() == []


async def test_nobody_is_waited_for_where_nobody_was_asked() -> None:
    assert await over(ProposalRound(set()), set()) == ((), 0)


async def test_a_line_names_all_who_say_so() -> None:
    its = ProposalRound(HOSTS)
    its.said("lhr", "a.toml: no such voice")
    its.said("fra", "a.toml: no such voice\nb.toml: no such model")
    its.said("directory second", "")
    assert await over(its, HOSTS) == ((), 0)
    assert its.lines() == ["a.toml: no such voice (so fra, lhr)", "b.toml: no such model (so fra)"]


async def test_who_has_fallen_silent_is_named_and_no_problem() -> None:
    its = ProposalRound(HOSTS)
    its.said("fra", "")
    assert await over(its, {"fra"}) == (("directory second", "lhr"), VERDICTS_S)
    assert its.lines() == []


async def test_who_is_heard_and_says_nothing_is_a_problem() -> None:
    its = ProposalRound(HOSTS)
    its.said("directory second", "")
    assert await over(its, HOSTS) == ((), VERDICTS_S)
    assert its.lines() == [f"{SAYS_NOTHING} (so fra, lhr)"]


async def test_a_host_that_was_not_asked_has_no_word() -> None:
    its = ProposalRound({"fra"})
    its.said("stranger", "a.toml: no such voice")
    its.said("fra", "")
    assert await over(its, set()) == ((), 0)
    assert its.lines() == []


def test_each_proposal_has_a_name_of_its_own() -> None:
    assert len({ProposalRound(HOSTS).id for _ in range(100)}) == 100

"""What the pages say can be done can be done: commands parse, paths exist, links resolve."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from latency_probes import __main__ as probes
from latency_probes.components import __main__ as components
from tests.decisions import anchor, decisions, index, pages, written
from voicepipe.agent import Agent, Intent, Tool, Webhook
from voicepipe.commands import cli
from voicepipe.engines.packages import INSTALLS

ROOT = Path(__file__).parent.parent
PAGES = pages()
TOP = tuple(f"{path.name}/" for path in ROOT.iterdir() if path.is_dir())


def commands(page: Path) -> Iterator[list[str]]:
    """The command lines of the page's blocks marked sh, one list of words a command."""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            while words:
                end = next((at for at, word in enumerate(words) if word in ("&&", "||", "|", ";", "&")), len(words))
                command, words = words[:end], words[end + 1 :]
                while command and re.match(r"\w+=", command[0]):  # VARIABLE=value before a command
                    command = command[1:]
                if command:
                    yield command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_their_paths_exist(page: Path) -> None:
    for command in commands(page):
        check(command)
        for word in command[1:]:
            path = word.partition("=")[2] or word
            assert not path.startswith(TOP) or (ROOT / path).exists() or any(ROOT.glob(path)), (
                f"{page.name}: no {path} in: {shlex.join(command)}"
            )


def check(command: list[str]) -> None:
    """The command is one of ours and its options are right, or it is a foreign one."""
    name = re.sub(r"^(\.venv|/opt/voicepipe(-[\d.]+)?)/bin/", "", command[0])
    if name == "make":
        would_make(*command[1:])
    elif name == "voicepipe":
        cli.parser().parse_args([word for word in command[1:] if word not in ("--help", "--version")] or ["doctor"])
    elif command[1:3] == ["-m", "latency_probes"]:
        probes.parser().parse_args([word for word in command[3:] if word != "--help"])
    elif command[1:3] == ["-m", "latency_probes.components"]:
        components.parser().parse_args(command[3:])
    elif name.startswith(("./", ".ci/")):
        assert (ROOT / name).exists(), f"no {name}"


@cache
def would_make(*targets: str) -> None:
    """Pages name the same ones again and again. Raises CalledProcessError: there is none of this name."""
    subprocess.run(["make", "-n", *targets], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name) if name else page
        assert linked.exists(), f"{page.name} links to {target}, which is not there"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked), f"{page.name} links to {target}, but there is no such heading"


def anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)}


ROOMS = [page for page in PAGES if page.name == "README.md" and (page.parent / "__init__.py").exists()]
"""The pages of folders with code: what the folder is for, its files in reading order, its decisions."""


def test_the_index_of_the_decisions_is_what_its_command_writes() -> None:
    text = (ROOT / "DESIGN.md").read_text()
    assert text == written(text, index()), "python -m tests.decisions"


def test_decisions_that_are_named_exist() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    known = {f"D{one.number}" for one in decisions()}
    for name in tracked.splitlines():
        path = ROOT / name
        if path.suffix in (".md", ".py", ".toml", ".js", ".html") and path.exists():
            unknown = set(re.findall(r"\bD\d{1,3}\b", path.read_text())) - known
            assert not unknown, f"{name} names {', '.join(sorted(unknown))}: not in DESIGN's index"


@pytest.mark.parametrize("page", [ROOT / "DESIGN.md", *ROOMS], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_are_named_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for name in re.findall(r"`(\w[\w./-]*(?:\.(?:py|js|toml|md)|/))`", text):
        assert any((folder / name).exists() for folder in (page.parent, ROOT / "voicepipe", ROOT)), f"no {name}"


def described(page: Path) -> Iterator[Path]:
    """The Python files that a folder's page has to name: those beside it, and those in folders below that have no page
    of their own. The package's page names such folders (`commands/`), not their files."""
    for path in page.parent.rglob("*.py"):
        between = path.parents[: path.parents.index(page.parent)]
        if page.parent == ROOT / "voicepipe":
            is_its = not between
        else:
            is_its = not any((folder / "README.md").exists() for folder in between)
        if is_its and not path.name.startswith("__"):
            yield path


@pytest.mark.parametrize(
    "page",
    [page for page in ROOMS if page.is_relative_to(ROOT / "voicepipe")],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_a_folders_page_names_all_its_files(page: Path) -> None:
    names = {path.relative_to(page.parent).as_posix() for path in described(page)}
    missing = names - set(re.findall(r"`([\w/]+\.py)`", page.read_text()))
    assert not missing, f"{page.relative_to(ROOT)} does not say what these are for: {', '.join(sorted(missing))}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 1300


def test_the_vllm_that_is_said_to_be_missing_is_the_one_that_was_tried() -> None:
    assert f" {INSTALLS['vllm']}\n" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("shape", [Agent, Tool, Webhook, Intent])
def test_every_key_of_an_agents_file_is_in_its_reference(shape: type[msgspec.Struct]) -> None:
    reference = (ROOT / "configs" / "agents" / "README.md").read_text()
    for key in shape.__struct_fields__:
        assert re.search(rf"`(\[\[?)?{key}\b|\b{key} = ", reference), key

"""What is said of a file that is wrong: each key, what is wrong with it, and what is allowed."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.config.told import problem, told
from voicepipe import config
from voicepipe.base.errors import ConfigError
from voicepipe.config import toml_file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[vllm]\ntokenizer = '/t'",
            "vllm.tokenizer: there is no such key; the engine's own arguments stand in vllm.args; ",
        ),
        (
            "[turn]\nprepare_ms = '3'",
            'turn.prepare_ms: cannot be "3"; allowed: a whole number, at least 0, at most 600000',
        ),
        (
            "[turn]\nprepare_ms = 1.5",
            "turn.prepare_ms: cannot be 1.5; allowed: a whole number, at least 0, at most 600000",
        ),
        (
            "[turn]\nprepare_ms = -1",
            "turn.prepare_ms: cannot be -1; allowed: a whole number, at least 0, at most 600000",
        ),
        ("[fleet]\nprice = 2", "fleet.price: there is no such key"),
        (
            "[pop]\nprice_per_hour = -1",
            "pop.price_per_hour: cannot be -1; allowed: a number, at least 0, at most 1000000000",
        ),
        ("[turn]\nprepare_ms = true", "turn.prepare_ms: cannot be true; allowed: a whole number"),
        ("[turn]\nduck_db = 3", "turn.duck_db: cannot be 3; allowed: a number, at least -96, at most 0"),
        ("[vad]\nstart_probability = 1", "vad.start_probability: cannot be 1; allowed: a number, above 0, below 1"),
        ("[engines]\nasr = 'siri'", 'engines.asr: cannot be "siri"; allowed: "nemotron", "scripted", "whisper"'),
        ("[pop]\nid = 'A b'", 'pop.id: cannot be "A b"; allowed: lower-case letters, digits, - and _'),
        ("[http]\norigins = ['a', 2]", "http.origins[1]: cannot be 2; allowed: text"),
        ("[http]\ncert = 'a'", "http: cert and key go together"),
        ("pop = 3", "pop: cannot be 3; allowed: a table with the keys id, region,"),
        (
            "[[tenants]]\nname = 'a'",
            "tenants[0].key_env: is missing; name the variable that holds it, or its file as key_file",
        ),
        (
            "[[tenants]]\nname = 'a'\nkey_env = 'A'\nslots = 0",
            "tenants[0].slots: cannot be 0; allowed: a whole number, at least 1",
        ),
        ("[turn", "is not TOML: "),
    ],
)
def test_problems_name_the_key_and_what_is_allowed(write: Any, text: str, said: str) -> None:
    assert problem(write(text)).startswith(said)


def test_all_problems_of_a_file_are_told_at_once(write: Any) -> None:
    file = write(
        "[pop]\nslots = -1\nspeed = 1\n[http]\nport = 70000\n[[tenants]]\n[[tenants]]\nname = 3\nkey_env = 'B'"
    )
    keys = {line.removeprefix(f"{file}: ").partition(": ")[0] for line in (f"{file}: " + problem(file)).splitlines()}
    assert {"pop.slots", "pop.speed", "http.port", "tenants[0].name"} <= keys


def test_every_problem_is_told_with_its_own_index(write: Any) -> None:
    """What is wrong is taken out, so that more can be found, and the rest of a list moves up."""
    tenant = '[[tenants]]\nname = "a"\nkey_env = "{}"\n'
    file = write("".join(tenant.format(name) for name in ("a-b", "c-d", "GOOD", "e-f")))
    assert told(file) == ["tenants[0].key_env", "tenants[1].key_env", "tenants[3].key_env"]
    file = write("[http]\norigins = [1, 'a', 2, 3]")
    assert told(file) == ["http.origins[0]", "http.origins[2]", "http.origins[3]"]
    trunk = '[[sip.trunks]]\nname = "{}"\naddresses = {}\n'
    file = write(trunk.format("A b", "['192.0.2.1']") + trunk.format("b", "[1, '192.0.2.1', 2]") + "[[tenants]]\n")
    assert told(file) == [
        "sip.trunks[0].name", "sip.trunks[1].addresses[0]", "sip.trunks[1].addresses[2]", "tenants[0].name",
    ]  # fmt: skip


def test_files_that_cannot_be_read(write: Any, tmp_path: Path) -> None:
    assert "No such file" in problem(tmp_path / "none.toml")
    assert "directory" in problem(tmp_path)
    file = tmp_path / "latin.toml"
    file.write_bytes(b"# \xe9")
    assert "not UTF-8" in problem(file)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a." * 500 + "a = 1", "a = " + "[" * 31 + "]" * 31])
def test_tables_and_lists_without_end_are_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "voicepipe.toml"
    file.write_text(text)

    with pytest.raises(ConfigError, match="deep inside one another; is a bracket missing"):
        config.load(file)


@pytest.mark.parametrize(
    "text",
    [
        "a." * 12_000 + "a = 1",
        "[" + "a." * 12_000 + "a]",
        "\"a\" . 'a' ." * 2_400 + "a = 1",
        "[a" + ".a" * 6_000 + "]\n" + "\n".join(f"k{n} = 1" for n in range(1_300)),
        "a = 'x' # y\nb = \"\"\"it's\"\"\"\"\"\nc = '''a\n\"'''\n" + "a." * 12_000 + "a = 1",
    ],
)
def test_a_key_of_many_parts_takes_no_time(tmp_path: Path, text: str) -> None:
    """tomllib's time and memory grow with their square: 24 KB took a second, and agents are read beside calls."""
    file = tmp_path / "voicepipe.toml"
    file.write_text(text)
    began = time.process_time()

    with pytest.raises(ConfigError, match="deep inside one another"):
        config.load(file)

    assert time.process_time() - began < 0.3


@pytest.mark.parametrize("dots", ["a." * 100, ".a" * 100, "." * 100])
def test_dots_in_texts_and_comments_are_no_keys(tmp_path: Path, dots: str) -> None:
    file = tmp_path / "voicepipe.toml"
    texts = (f'"{dots}"', f"'{dots}'", f'"""\n{dots} "" \\""" {dots}"""', f"'''\n{dots} '' {dots}'''", f'"\\" {dots}"')
    file.write_text(f"# {dots}\n[http]\norigins = [{', '.join(texts)}] # {dots}\n")

    assert all(dots in origin for origin in config.load(file).http.origins)


def test_of_a_file_that_is_none_of_ours_the_first_problems_are_told(write: Any) -> None:
    """Each takes another look at all of the file."""
    lines = problem(write("\n".join(f"k{n} = 1" for n in range(2000)))).splitlines()
    assert len(lines) == toml_file.MOST_PROBLEMS + 1
    assert "k0: there is no such key" in lines[0]
    assert "there may be more" in lines[-1]


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 4000], ids=["decimal", "hexadecimal"])
@pytest.mark.parametrize("key", ["slots", "id", "new"])
def test_a_number_too_long_to_be_shown(write: Any, key: str, number: str) -> None:
    assert problem(write(f"[pop]\n{key} = {number}"))

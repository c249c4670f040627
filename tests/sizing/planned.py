"""What `voicepipe plan` answers, kept as figures: `python -m tests.sizing.planned` writes the files, and then
`python -m latency_probes.tables` the tables of the pages that show them."""

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from typing import Any

from latency_probes.tables import FIGURES
from tests.support.paths import ROOT
from voicepipe.commands import cli

H100 = "--model llama-3.1-8b --gpus H100"
SHORT = "--first-phrase short"
HOSTS = "--model llama-3.1-8b --gpus L4,RTX-4090,L40S,H100,H200,B200"
SMALL = f"--model qwen3-4b --gpus RTX-4090 --mps {SHORT}"
PRICED = "--model qwen3-8b --gpus H100 --price 2.5 --hosted 0.06"
CONFIGS = ("gpu", "gpu-24gb", "gpu-whisper")
WAYS = {
    "kokoro": "",
    "kokoro_mps": "--mps",
    "kokoro_short": SHORT,
    "kokoro_short_mps": f"{SHORT} --mps",
    "kokoro_whisper_short": f"{SHORT} --asr large-v3-turbo",
    "neutts": "--tts neutts",
    "neutts_mps": "--tts neutts --mps",
    "neutts_short": f"--tts neutts {SHORT}",
    "neutts_short_mps": f"--tts neutts {SHORT} --mps",
}
"""What an H100 may have, with Llama 3.1 8B."""


def printed(arguments: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        cli.main(["plan", *arguments.split()])
    return out.getvalue()


def facts(arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(f"{arguments} --json"))
    return found


def calls(arguments: str) -> dict[str, int]:
    """In time, by the weights' type, with the model on one GPU."""
    return {
        option["dtype"]: option["calls_in_time"]
        for option in facts(arguments)["options"]
        if option["name"].endswith("one GPU")
    }


def one_host() -> dict[str, Any]:
    """What sentences and tables say of single hosts."""
    return {
        "h100": {name: calls(f"{H100} {way}") for name, way in WAYS.items()},
        "rtx_4090": {"kokoro": calls(SMALL), "neutts": calls(f"{SMALL} --tts neutts")},
        "configs": {name.replace("-", "_"): configured(name) for name in CONFIGS},
        "cost": {option["dtype"]: priced(option) for option in facts(PRICED)["options"]},
    }


def priced(option: dict[str, Any]) -> dict[str, Any]:
    cost = option["cost"]
    return {
        "calls": option["calls_in_time"], "minute_cost": cost["minute_cost"],
        "break_even_percent": round(100 * cost["break_even_use"]),
    }  # fmt: skip


def configured(name: str) -> dict[str, int]:
    """By the command in the header of a configuration: as it is, with CUDA MPS, and with first phrases as usual."""
    header = (ROOT / "configs" / f"{name}.toml").read_text()
    command = re.search(r"^#   voicepipe plan (.*)$", header, re.MULTILINE)
    assert command, "its header says how it was sized"
    chosen = facts(command[1])["best"]
    ways = {"calls": command[1], "mps": f"{command[1]} --mps", "usual": command[1].replace(SHORT, "")}
    return {
        key: next(option["calls_in_time"] for option in facts(way)["options"] if option["name"] == chosen)
        for key, way in ways.items()
    }


def hosts(arguments: str) -> dict[str, Any]:
    """The table that `plan` prints, as `latency_probes.tables` has tables."""
    head, rule, *rows = (line for line in printed(arguments).splitlines() if line.startswith("|"))
    names, rules, *cells = ([cell.strip() for cell in line[1:-1].split("|")] for line in (head, rule, *rows))
    return {
        "columns": dict(zip(names, names, strict=True)),
        "right": [name for name, how in zip(names, rules, strict=True) if how.endswith(":")],
        "rows": [dict(zip(names, row, strict=True)) for row in cells],
    }


COMPARED = {"plan-hosts.json": f"{HOSTS} {SHORT}", "plan-hosts-neutts.json": f"{HOSTS} --tts neutts --mps"}
FILES: dict[str, Callable[[], dict[str, Any]]] = {
    "plan.json": one_host,
    **{file: partial(hosts, arguments) for file, arguments in COMPARED.items()},
}


def text(file: str) -> str:
    """Of one of FILES, as it is now."""
    return json.dumps(FILES[file](), indent=1) + "\n"


if __name__ == "__main__":
    for file in FILES:
        (FIGURES / file).write_text(text(file))

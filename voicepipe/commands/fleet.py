"""`voicepipe pops` and `voicepipe drain`: what a directory knows of the fleet, and what it passes on to a PoP."""

import sys
from typing import Any
from urllib.parse import quote

import httpx
from rich.console import Console
from rich.table import Table

from voicepipe.environment import variable
from voicepipe.errors import ConfigError

TIMEOUT_S = 10.0
WIDTH = 170


def pops(directory: str, key_env: str) -> int:
    """Print a table of the PoPs, with those that fell silent within a day. Exit status 1 if none takes calls. Raises
    ConfigError: the directory does not say."""
    answer = _asked("GET", directory, "/v1/pops", key_env)
    # A file or a pipe has no width of its own, and 80 columns would break every line in two.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
    lost = [pop | {"status": "lost"} for pop in answer.get("lost", ())]
    console.print(table([*answer["pops"], *lost]))
    if answer["cut_off"]:
        console.print("[yellow]This directory is cut off: it goes on with what it heard last.[/]")
    return 0 if any(pop["status"] in ("ok", "late") for pop in answer["pops"]) else 1


def drain(pop: str, directory: str, key_env: str) -> int:
    """Order a PoP to take no new calls and to end with its last one. Raises ConfigError: the directory cannot."""
    _asked("POST", directory, f"/v1/pops/{quote(pop, safe='')}/drain", key_env)
    print(f"{pop} takes no new calls, and ends once its last one has ended (`voicepipe pops` shows how many it has)")
    return 0


def table(rows: list[dict[str, Any]]) -> Table:
    """One line for each PoP."""
    made = Table(box=None, header_style="dim", pad_edge=False)
    for name, justify in (("PoP", "left"), ("region", "left"), ("zone", "left"), ("status", "left"), ("calls", "right"),
                          ("predicted ms", "right"), ("budget", "right"), ("heard s ago", "right"),
                          ("model", "left"), ("agents", "left"), ("url", "left")):  # fmt: skip
        made.add_column(name, justify=justify)  # type: ignore[arg-type]
    for pop in rows:
        coming = f" +{pop['coming']}" if pop["coming"] else ""
        colour = {"ok": "green", "late": "yellow", "full": "yellow"}.get(pop["status"], "red")
        made.add_row(
            pop["pop"], pop["region"], pop["zone"], f"[{colour}]{pop['status']}[/]",
            f"{pop['calls']}{coming} of {pop['slots']}", f"{pop['predicted_ms']:.0f}", f"{pop['budget_ms']:.0f}",
            f"{pop['age_s']:.1f}", pop["model"], ", ".join(pop["agents"]), pop["url"],
        )  # fmt: skip
    return made


def _asked(method: str, directory: str, path: str, key_env: str) -> Any:
    key = variable(key_env)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answer = httpx.request(method, f"{directory.rstrip('/')}{path}", headers=headers, timeout=TIMEOUT_S)
        said = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ConfigError(
            f"{directory} does not answer as a directory does ({error}): is --directory its address?"
        ) from None
    if answer.status_code == 401:
        raise ConfigError(f"{directory}: {said['error']['message']} (here: the environment variable {key_env})")
    if answer.status_code >= 400:
        message = said["error"]["message"] if "error" in said else "this is no directory: give --directory its address"
        raise ConfigError(f"{directory}: {message}")
    return said

"""`voicepipe push`: agents, routes and tenants for a whole fleet, through one of its directories."""

import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from voicepipe.commands.fleet import asked
from voicepipe.config import fleet_rules
from voicepipe.config.agent_store import load_agents
from voicepipe.editions.edition import gathered

EDITIONS = "/v1/editions"
TAKEN_S = 10.0
"""PoPs are waited for so long."""
AGAIN_S = 0.25


def push(folder: Path, rules: Path | None, directory: str, key_env: str) -> int:
    """Send the folder's agents, with `rules`, and wait until the PoPs have them. Exit status 1: some have not. Raises
    ConfigError: a file is wrong here or at one of the hosts, and nobody has taken any."""
    load_agents(folder)  # What is wrong with a file is said before anybody is asked.
    if rules:
        fleet_rules.load(rules)
    pushed = asked("POST", directory, EDITIONS, key_env, {"files": gathered(folder, rules)})
    return _followed(pushed, directory, key_env)


def roll_back(number: int, directory: str, key_env: str) -> int:
    """Have the fleet go by an earlier edition's files again. As `push`."""
    return _followed(asked("POST", directory, EDITIONS, key_env, {"like": number}), directory, key_env)


def listed(directory: str, key_env: str) -> int:
    """Print the editions that a directory keeps, the newest first."""
    made = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("edition", "pushed", "files", "digest"):
        made.add_column(name)
    for edition in asked("GET", directory, EDITIONS, key_env)["editions"]:
        at = datetime.fromtimestamp(edition["at"]).strftime("%Y-%m-%d %H:%M:%S")
        number = f"{edition['number']}" + (f" (as {edition['like']})" if edition["like"] else "")
        made.add_row(number, at, str(len(edition["files"])), edition["digest"])
    Console(highlight=False).print(made)
    return 0


def _followed(pushed: dict[str, Any], directory: str, key_env: str) -> int:
    """Say who goes by it, until all do."""
    console, number = Console(highlight=False), pushed["number"]
    like = f", as {pushed['like']} was" if pushed["like"] else ""
    console.print(f"edition {number} ({pushed['digest']}{like}) is pushed: {len(pushed['files'])} files")
    began = time.monotonic()
    with console.status("") as status:
        while True:
            pops = [pop for pop in asked("GET", directory, "/v1/pops", key_env)["pops"] if takes(pop)]
            late = [pop for pop in pops if pop["edition"]["digest"] != pushed["digest"]]
            took_s = time.monotonic() - began
            if not late or took_s > TAKEN_S:
                break
            status.update(f"{len(pops) - len(late)} of {len(pops)} PoPs go by it")
            time.sleep(AGAIN_S)
    if not pops:
        console.print("No PoP that is heard takes editions: set fleet.editions at each.")
    elif not late:
        console.print(f"All {len(pops)} PoPs go by it, {took_s:.1f} s after.")
    for line in _why_late(late):
        console.print(line)
    return 1 if late or not pops else 0


def takes(pop: dict[str, Any]) -> bool:
    """Whether it takes what is pushed, whenever it comes."""
    return pop["edition"] is not None and not pop["edition"]["pinned"]


def _why_late(pops: Iterable[dict[str, Any]]) -> Iterable[str]:
    for pop in pops:
        why = pop["edition"]["problem"] or f"has not taken it over within {TAKEN_S:g} s; it does once it hears of it"
        yield f"[yellow]{pop['pop']}[/]: {why}"

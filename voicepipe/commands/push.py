"""`voicepipe push`: agents, routes and tenants for a whole fleet, through one of its directories."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from voicepipe.base.errors import ConfigError
from voicepipe.base.figures import for_tables
from voicepipe.commands.fleet import headed
from voicepipe.commands.remote_server import RemoteServer
from voicepipe.config import load_rules
from voicepipe.config.agent_store import AgentStore, read_agent
from voicepipe.directory.editions.edition import gathered

EDITIONS = "/v1/editions"
TAKEN_S = 10.0
"""Seconds for which PoPs are waited for."""
AGAIN_S = 0.25


def push(folder: Path, rules: Path | None, directory: RemoteServer, *, own_rules: bool, dry: bool) -> int:
    """Send the folder's agents, with `rules`, and wait until the PoPs have them. `own_rules`: each host goes back to
    the routes and tenants of its own file. `dry`: only check whether all hosts would take it. Exit status 1: it is
    pushed, and some do not have it yet. Raises ConfigError: a file has an error here or at one of the hosts, and no
    host has taken any."""
    files = gathered(folder, rules)
    AgentStore(folder, read=read_agent)  # What is wrong with a file is said before anybody is asked.
    if rules:
        load_rules(rules)
    body = {"files": files, "own_rules": own_rules, "dry_run": dry}
    pushed = directory.asked("POST", EDITIONS, body)
    if dry:
        return _checked(pushed)
    return _followed(pushed, directory)


def _checked(pushed: dict[str, Any]) -> int:
    if pushed["unheard"]:
        print(f"Asked, and did not answer: {', '.join(pushed['unheard'])}. The others would take it.")
        return 1
    print(f"All hosts that are heard would take these {len(pushed['files'])} files.")
    return 0


def roll_back(number: int, directory: RemoteServer) -> int:
    """Have the fleet use an earlier edition's files again. Returns and raises as `push`."""
    return _followed(directory.asked("POST", EDITIONS, {"like": number}), directory)


def listed(directory: RemoteServer) -> int:
    """Print the editions that a directory keeps, the newest first."""
    made = headed("edition", "pushed", "files", "digest")
    answer = directory.asked("GET", EDITIONS)
    for edition in answer["editions"]:
        at = datetime.fromtimestamp(edition["at"]).strftime("%Y-%m-%d %H:%M:%S")
        number = f"{edition['number']}" + (f" (as {edition['like']})" if edition["like"] else "")
        number += " now" if edition["number"] == answer["current"] else ""
        made.add_row(number, at, str(len(edition["files"])), edition["digest"])
    for_tables().print(made)
    return 0


def _followed(pushed: dict[str, Any], directory: RemoteServer) -> int:
    """Print which PoPs use it, until all do."""
    console, number = for_tables(), pushed["number"]
    like = f", as {pushed['like']} was" if pushed["like"] else ""
    console.print(f"edition {number} ({pushed['digest']}{like}) is pushed: {len(pushed['files'])} files")
    try:
        missing = list(_waited_for(pushed, directory, console))
    except ConfigError as error:
        missing = [f"It is pushed, and nobody can say who has it: {error}"]
    for line in missing:
        console.print(f"[yellow]{escape(line)}[/]")
    return 1 if missing else 0


def _waited_for(pushed: dict[str, Any], directory: RemoteServer, console: Console) -> Iterator[str]:
    """A line for each host that has not taken it over when the time is up. Raises ConfigError."""
    began = time.monotonic()
    with console.status("") as status:
        while True:
            answer = directory.asked("GET", "/v1/pops")
            pops = [pop for pop in answer["pops"] if takes(pop)]
            late = [pop for pop in pops if pop["edition"]["digest"] != pushed["digest"]]
            took_s = time.monotonic() - began
            if not late or took_s > TAKEN_S:
                break
            status.update(f"{len(pops) - len(late)} of {len(pops)} PoPs go by it")
            time.sleep(AGAIN_S)
    newest = answer["edition"]
    if newest and newest["digest"] != pushed["digest"]:
        yield f"Another push came at the same time, and all hosts go by that one: edition {newest['number']}."
        return
    console.print(f"{len(pops) - len(late)} of {len(pops)} PoPs go by it, {took_s:.1f} s after.")
    for pop in answer["pops"]:
        if pop["edition"] and pop["edition"]["pinned"]:
            console.print(f"{pop['pop']} stays at edition {pop['edition']['number']} (fleet.edition).")
    if not pops:
        yield "No PoP that is heard takes editions: set fleet.editions at each."
    for pop in late:
        yield f"{pop['pop']}: {pop['edition']['problem'] or 'has not taken it over yet'}"
    away = {pop["pop"] for pop in answer["lost"] if takes(pop)} | set(pushed["unheard"])
    if away:
        yield f"Not heard of: {', '.join(sorted(away))}. They take it over when they hear of it."


def takes(pop: dict[str, Any]) -> bool:
    """Whether the host takes what is pushed, whenever it comes."""
    return pop["edition"] is not None and not pop["edition"]["pinned"]

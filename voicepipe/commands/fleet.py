"""`voicepipe pops` and `voicepipe drain`: what a directory knows of the fleet, and what it passes on to a PoP.
`compare.py` has `voicepipe pops --compare`."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from rich.markup import escape
from rich.table import Table

from voicepipe.base.figures import for_tables
from voicepipe.commands.remote_server import RemoteServer


def pops(directory: RemoteServer) -> int:
    """Print a table of the PoPs, with those that fell silent within a day. Exit status 1 if none takes calls. Raises
    ConfigError: the directory does not answer."""
    answer = directory.asked("GET", "/v1/pops")
    console = for_tables()
    lost = [pop | {"status": "lost"} for pop in answer.get("lost", ())]
    newest = answer.get("edition")
    console.print(table([*answer["pops"], *lost], newest))
    for whose, problem in problems(answer["pops"], newest):
        console.print(f"[yellow]{whose}[/] does not go by the newest edition: {escape(problem)}")
    for canary in answer.get("canaries", ()):
        what = f"version {canary['version']}" if canary["version"] else canary["pop"]
        console.print(f"On trial: {what}. By its share of {100 * canary['share']:.0f} % it got {canary['took']} of "
                      f"{canary['of']} calls at this directory that it and others could take.")  # fmt: skip
    if answer["cut_off"]:
        console.print("[yellow]This directory is cut off: it goes on with what it heard last.[/]")
    return 0 if any(pop["status"] in ("ok", "late") for pop in answer["pops"]) else 1


def headed(*columns: str) -> Table:
    """A table without rows. Names of columns of figures begin with ">"."""
    made = Table(box=None, header_style="dim", pad_edge=False)
    for name in columns:
        made.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left")
    return made


def drain(pop: str, directory: RemoteServer) -> int:
    """Order a PoP to take no new calls and to exit after its last one. Raises ConfigError: the directory cannot."""
    directory.asked("POST", f"/v1/pops/{quote(pop, safe='')}/drain")
    print(f"{pop} takes no new calls, and ends once its last one has ended (`voicepipe pops` shows how many it has)")
    return 0


def forget(pop: str, directory: RemoteServer) -> int:
    """Have a directory forget a PoP that was taken away for good. Raises ConfigError: it reports, or is unknown."""
    directory.asked("DELETE", f"/v1/pops/{quote(pop, safe='')}")
    print(f"{pop} is forgotten at this directory: it is not named any more where something is asked of all PoPs")
    return 0


def table(rows: list[dict[str, Any]], newest: dict[str, Any] | None = None) -> Table:
    """A line for each PoP. `newest`: the edition that the fleet is to have."""
    made = headed("PoP", "region", "zone", "version", "status", ">calls", ">predicted ms", ">budget", ">heard s ago",
                  "edition", "model", "agents", "url")  # fmt: skip
    for pop in rows:
        coming = f" +{pop['coming']}" if pop["coming"] else ""
        colour = {"ok": "green", "late": "yellow", "full": "yellow"}.get(pop["status"], "red")
        share = pop.get("share", 1)
        failed = f"[yellow]recovering, {100 * share:.0f} %[/]" if share else "[red]failing[/]"
        status = f"[{colour}]{pop['status']}[/]" + (f" {failed}" if share < 1 else "")
        made.add_row(
            pop["pop"], pop["region"], pop["zone"], pop.get("version", ""), status,
            f"{pop['calls']}{coming} of {pop['slots']}", f"{pop['predicted_ms']:.0f}", f"{pop['budget_ms']:.0f}",
            f"{pop['age_s']:.1f}", edition(pop["edition"], newest), pop["model"], ", ".join(pop["agents"]), pop["url"],
        )  # fmt: skip
    return made


def edition(its: dict[str, Any] | None, newest: dict[str, Any] | None) -> str:
    """The edition of a PoP, and whether it should be another."""
    if its is None:
        return "[dim]own files[/]"
    number = str(its["number"] or "none")
    if newest is None or its["digest"] == newest["digest"]:
        return number
    return f"{number} (stays)" if its["pinned"] else f"[yellow]{number}, not {newest['number']}[/]"


def problems(pops: list[dict[str, Any]], newest: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """PoPs that could not take over the newest edition, and why."""
    if newest and newest["problem"]:
        yield "This directory", newest["problem"]
    for directory, number in (newest["directories"] if newest else {}).items():
        yield f"Directory {directory}", f"it has edition {number}" if number else "it has none"
    for pop in pops:
        if pop["edition"] and pop["edition"]["problem"]:
            yield pop["pop"], pop["edition"]["problem"]

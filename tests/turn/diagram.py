"""The turn machine's rules as a diagram and tables: `python -m tests.turn.diagram` writes them into turn/README.md."""

from collections.abc import Iterator
from pathlib import Path

from voicepipe.turn.machine import RULES, Rule, State

PAGE = Path(__file__).parent.parent.parent / "voicepipe" / "turn" / "README.md"
BEGIN, END = "<!-- written by: python -m tests.turn.diagram -->\n", "<!-- end -->\n"


def rules() -> str:
    """Markdown: a Mermaid diagram of what changes the state, and a table of all rules for each state."""
    parts = ["```mermaid\n", *_diagram(), "```\n"]
    for state in State:
        parts += [f"\n### {state.name}\n\n", "| fact | if | do | then |\n|---|---|---|---|\n"]
        parts += [_row(rule) for rule in RULES if rule.state is state]
    return "".join(parts)


def _diagram() -> Iterator[str]:
    yield "stateDiagram-v2\n    [*] --> IDLE\n"
    edges = dict[tuple[State, State], dict[str, None]]()
    for rule in RULES:
        if rule.then is not rule.state:
            edges.setdefault((rule.state, rule.then), {}).update(dict.fromkeys(fact.__name__ for fact in rule.facts))
    for (state, then), facts in edges.items():
        yield f"    {state.name} --> {then.name}: {', '.join(facts)}\n"


def _row(rule: Rule) -> str:
    when, do = (", ".join(names) for names in (_asked(rule), [action.name for action in rule.do]))
    return f"| {_facts(rule)} | {when} | {do} | {'' if rule.then is rule.state else rule.then.name} |\n"


def _asked(rule: Rule) -> list[str]:
    return [ask.__name__.replace("_", " ") for ask in rule.when]


def _facts(rule: Rule) -> str:
    return " or ".join(fact.__name__ for fact in rule.facts)


def written(page: str) -> str:
    """`page` with the rules of now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{rules()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))

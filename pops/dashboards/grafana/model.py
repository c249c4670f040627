"""Grafana's JSON of a dashboard (its classic model, as Grafana 11 and 12 read it), from a table of rows and panels.

Only what differs from Grafana's defaults is written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

SCHEMA = 42
"""The version of Grafana's model."""
WIDTH = 24
"""Columns of Grafana's grid."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
Json = dict[str, Any]
Kind = Literal["timeseries", "stat", "table", "heatmap", "bargauge", "text"]
Needs = Literal["", "price", "records", "vllm", "gpu", "probe"]
NEEDED: Mapping[Needs, str] = {
    "": "",
    "price": "Needs pop.price_per_hour.",
    "records": "Needs records.folder.",
    "vllm": 'With llm = "vllm".',
    "gpu": "With a GPU and nvidia-ml-py.",
    "probe": "Needs voicepipe probe.",
}
REFS = "ABCDEFGHIJKLMNOP"
"""Names of a panel's queries."""


@dataclass(frozen=True, slots=True)
class Panel:
    """What one shows, and how."""

    title: str
    queries: Mapping[str, str]
    """PromQL, by what its series are called: `{{label}}` stands for a label's value. In a table by its column; "": the
    column is not shown, only the labels."""
    unit: str = "short"
    """Grafana's name."""
    about: str = ""
    kind: Kind = "timeseries"
    needs: Needs = ""
    """What a PoP must have for it to show anything."""
    width: int = 8
    height: int = 8
    red: float | None = None
    """From this value on."""
    stacked: bool = False
    exemplars: bool = False
    per_bucket: bool = False
    """Its series are a histogram's, which Grafana makes buckets of."""
    columns: Mapping[str, Json] = field(default_factory=dict)
    """Of a table: how they are shown, by Grafana's names."""
    link: tuple[str, str] = ("", "")
    """Of a table: a column, and the address behind it."""
    text: str = ""

    @property
    def at_once(self) -> bool:
        """It shows one moment, not a course."""
        return self.kind in ("stat", "table", "bargauge")

    def json(self) -> Json:
        """Without its place and number."""
        shown: Json = {"type": self.kind, "title": self.title, "options": _options(self)}
        if about := f"{self.about} {NEEDED[self.needs]}".strip():
            shown["description"] = about
        if self.kind == "text":
            return shown
        shown |= {"datasource": SOURCE, "targets": [*self._targets()], "fieldConfig": _fields(self)}
        if self.kind == "table":
            shown["transformations"] = self._as_one_table()
        return shown

    def _as_one_table(self) -> list[Json]:
        """Rows of several queries become one where their labels are the same; columns get their names."""
        several = len(self.queries) > 1
        columns = {f"Value #{ref}" if several else "Value": name for ref, name in zip(REFS, self.queries, strict=False)}
        named = {column: name for column, name in columns.items() if name}
        dropped = dict.fromkeys(["Time", *(columns.keys() - named.keys())], True)
        return [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": dropped, "indexByName": {}, "renameByName": named}},
        ]

    def _targets(self) -> Iterator[Json]:
        form = "heatmap" if self.per_bucket else "table" if self.kind == "table" else "time_series"
        for ref, (name, query) in zip(REFS, self.queries.items(), strict=False):
            target: Json = {"datasource": SOURCE, "editorMode": "code", "expr": query, "format": form, "refId": ref}
            if self.kind != "table":
                target["legendFormat"] = name
            if self.exemplars:
                target["exemplar"] = True
            yield target | {"instant": self.at_once, "range": not self.at_once}


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    uid: str
    title: str
    about: str
    variables: Sequence[Json]
    links: Sequence[Json]
    rows: tuple[Row, ...]

    def json(self) -> Json:
        """What Grafana imports."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.about,
            "tags": ["voicepipe"],
            "schemaVersion": SCHEMA,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": "now-3h", "to": "now"},
            "annotations": {"list": []},
            "templating": {"list": list(self.variables)},
            "links": list(self.links),
            "panels": [*_placed(self.rows)],
        }


def _placed(rows: tuple[Row, ...]) -> Iterator[Json]:
    """Rows one below the other; their panels from left to right, then in a new line."""
    number, top = count(1), 0
    for row in rows:
        heading = {"type": "row", "title": row.title, "collapsed": False, "panels": []}
        yield {"id": next(number), "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": top}} | heading
        top, left, tall = top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > WIDTH:
                top, left, tall = top + tall, 0, 0
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            yield {"id": next(number), "gridPos": place} | panel.json()
            left, tall = left + panel.width, max(tall, panel.height)
        top += tall


def steps(*colours: tuple[float | None, str]) -> Json:
    """Thresholds: from each value on its colour; None: from the lowest one."""
    return {"mode": "absolute", "steps": [{"color": colour, "value": value} for value, colour in colours]}


BUDGET: Json = {
    "color": {"mode": "fixed", "fixedColor": "red"},
    "custom.lineStyle": {"fill": "dash", "dash": [10, 10]},
    "custom.fillOpacity": 0,
    "custom.stacking": {"mode": "none", "group": "B"},
}
"""How a series of this name is drawn."""


def _options(panel: Panel) -> Json:
    reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    options: Mapping[Kind, Json] = {
        "timeseries": {"tooltip": {"mode": "multi", "sort": "desc"}},
        "stat": {"reduceOptions": reduced, "graphMode": "none"},
        "bargauge": {"reduceOptions": reduced, "displayMode": "basic", "orientation": "horizontal"},
        "table": {"cellHeight": "sm"},
        "heatmap": {
            "calculate": False,
            "yAxis": {"unit": panel.unit, "axisPlacement": "left"},
            "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
            "tooltip": {"mode": "single", "yHistogram": True},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
        },
        "text": {"mode": "markdown", "content": panel.text},
    }
    return options[panel.kind]


def _fields(panel: Panel) -> Json:
    defaults: Json = {"unit": panel.unit, "min": 0, "noValue": "none"}
    overrides = [_override(column, properties) for column, properties in panel.columns.items()]
    if panel.red is not None:
        defaults["thresholds"] = steps((None, "green"), (panel.red, "red"))
    elif panel.kind in ("stat", "bargauge"):
        defaults["thresholds"] = steps((None, "green"))  # Grafana's own have red from 80 on.
    if panel.kind == "timeseries" and panel.red is not None:
        defaults["custom"] = {"thresholdsStyle": {"mode": "dashed"}}
    if panel.stacked:
        defaults["custom"] = {"fillOpacity": 40, "stacking": {"mode": "normal", "group": "A"}}
    if "budget" in panel.queries:
        overrides.append(_override("budget", BUDGET))
    if panel.link[0]:
        column, url = panel.link
        overrides.append(_override(column, {"links": [{"title": "Open", "url": url, "targetBlank": "://" in url}]}))
    return {"defaults": defaults, "overrides": overrides}


def _override(name: str, properties: Json) -> Json:
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties.items()],
    }


# Variables and links.


def datasource() -> Json:
    """The Prometheus, which the user chooses."""
    return {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus", "refresh": 1,
            "current": {}, "hide": 0}  # fmt: skip


def values(name: str, label: str, metric: str, *, several: bool = True, of: str = "") -> Json:
    """The values that a label of this metric has. `of`: the label's name, where it is another; `several`: all of them
    unless the user chooses."""
    query = f"label_values({metric},{of or name})"
    shown: Json = {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "definition": query,
        "query": {"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "refresh": 2,
        "sort": 1,
        "hide": 0,
        "multi": several,
        "includeAll": several,
        "current": {},
    }
    if several:
        shown |= {"allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}}
    return shown


def choice(name: str, label: str, *options: str, first: str) -> Json:
    """One of these."""
    offered = [{"text": option, "value": option, "selected": option == first} for option in options]
    return {"type": "custom", "name": name, "label": label, "query": ",".join(options), "options": offered,
            "current": {"text": first, "value": first}, "multi": False, "includeAll": False, "hide": 0}  # fmt: skip


def beside() -> Json:
    """Links to the other dashboards of voicepipe, with the same time and variables."""
    return {"type": "dashboards", "title": "voicepipe", "tags": ["voicepipe"], "asDropdown": False, "icon": "dashboard",
            "includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}  # fmt: skip


def page(title: str, url: str, tooltip: str) -> Json:
    """A link to a page outside Grafana."""
    return {"type": "link", "title": title, "url": url, "tooltip": tooltip, "tags": [], "icon": "external link",
            "asDropdown": False, "includeVars": False, "keepTime": False, "targetBlank": True}  # fmt: skip

"""A directory that has 40 PoPs, as its answers to the fleet's dashboard tell of them. None of them runs."""

from pathlib import Path
from random import Random
from typing import Any

from playwright.sync_api import Page, Route

from voicepipe.directory.server.directory_http import WEB

ADDRESS = "http://directory.example"
CITIES: dict[str, tuple[str, float, float]] = {
    "ams": ("eu-west", 52.4, 4.9), "arn": ("eu-north", 59.3, 18.1), "bcn": ("eu-south", 41.4, 2.2),
    "bru": ("eu-west", 50.9, 4.4), "cdg": ("eu-west", 48.9, 2.4), "cph": ("eu-north", 55.7, 12.6),
    "dub": ("eu-west", 53.3, -6.3), "fra": ("eu-central", 50.1, 8.7), "lhr": ("eu-west", 51.5, -0.1),
    "mad": ("eu-south", 40.4, -3.7), "mxp": ("eu-south", 45.5, 9.2), "vie": ("eu-central", 48.2, 16.4),
    "waw": ("eu-central", 52.2, 21.0), "zrh": ("eu-central", 47.4, 8.5), "ist": ("eu-south", 41.0, 29.0),
    "iad": ("us-east", 39.0, -77.5), "jfk": ("us-east", 40.7, -74.0), "bos": ("us-east", 42.4, -71.1),
    "atl": ("us-south", 33.7, -84.4), "mia": ("us-south", 25.8, -80.2), "dfw": ("us-south", 32.8, -96.8),
    "ord": ("us-central", 41.9, -87.6), "den": ("us-central", 39.7, -105.0), "lax": ("us-west", 34.1, -118.2),
    "sjc": ("us-west", 37.3, -121.9), "sea": ("us-west", 47.6, -122.3), "yyz": ("ca-east", 43.7, -79.4),
    "gru": ("sa-east", -23.6, -46.6), "eze": ("sa-south", -34.6, -58.4), "bog": ("sa-north", 4.7, -74.1),
    "jnb": ("af-south", -26.2, 28.0), "los": ("af-west", 6.5, 3.4), "dxb": ("me-central", 25.2, 55.3),
    "bom": ("ap-south", 19.1, 72.9), "del": ("ap-south", 28.6, 77.2), "sin": ("ap-southeast", 1.4, 103.8),
    "hkg": ("ap-east", 22.3, 114.2), "icn": ("ap-northeast", 37.6, 127.0), "nrt": ("ap-northeast", 35.7, 139.7),
    "syd": ("ap-southeast", -33.9, 151.2),
}  # fmt: skip
"""Region, latitude and longitude."""
STATES = {"sea1": "late", "sin1": "full", "vie1": "draining", "bog1": "engine_down"}
CANARIES = ("fra1", "lhr1", "ord1")
SHARES = {"lhr1": 0.0, "ord1": 0.2}
"""Turns fail at the one, and failed at the other."""
SLOW, QUIET, OLD, LOST = "gru1", "los1", "jnb1", "hkg1"
"""One whose p95 is over its budget, one without calls, one of a version that tells no figures, one that fell silent."""
BEHIND, DIGEST = "zrh1", "3fa9c17be012"
"""It goes by an older edition than the others."""


def view() -> dict[str, Any]:
    """GET /v1/pops."""
    lots = Random(40)
    rows = [row(f"{name}1", *city, lots) for name, city in CITIES.items()]
    lost = [{**one, "status": "silent", "age_s": 254.0} for one in rows if one["pop"] == LOST]
    placed = [_placed(number, lots) for number in range(6)]
    newest = {"number": 12, "digest": DIGEST, "at": 1.0, "problem": ""}
    return {"now": 1.0, "cut_off": False, "pops": [one for one in rows if one["pop"] != LOST], "lost": lost,
            "edition": newest, "placed": placed}  # fmt: skip


def row(pop: str, region: str, latitude: float, longitude: float, lots: Random) -> dict[str, Any]:
    """A PoP as the directory lists it."""
    slots = lots.choice((24, 36, 60))
    status = STATES.get(pop, "ok")
    calls = 0 if pop == QUIET else slots if status == "full" else int(slots * lots.uniform(0.15, 0.85))
    return {
        "pop": pop, "region": region, "zone": region[:2], "place": {"latitude": latitude, "longitude": longitude},
        "url": f"https://{pop}.example", "status": status, "calls": calls, "coming": lots.choice((0, 0, 0, 1)),
        "slots": slots, "predicted_ms": 342.0 if status == "late" else round(lots.uniform(150, 280)),
        "budget_ms": 300.0, "age_s": round(lots.uniform(0.1, 1.1), 2), "agents": ["front-desk"], "model": "vllm",
        "version": "1.4.1" if pop in CANARIES else "1.4.0", "share": SHARES.get(pop, 1.0),
        "weight": 1.0, "price_per_hour": {24: 1.2, 36: 2.1, 60: 3.9}[slots],
        "recent": None if pop == OLD else recent(pop, calls, lots),
        "edition": {"number": 11 if pop == BEHIND else 12, "digest": "old" if pop == BEHIND else DIGEST, "problem": "",
                    "pinned": False},
    }  # fmt: skip


def recent(pop: str, calls: int, lots: Random) -> dict[str, Any]:
    """What its last 5 minutes' turns add up to."""
    turns = int(calls * lots.uniform(18, 26))
    p50 = round(lots.uniform(128, 205), 1)
    p95 = 412.4 if pop == SLOW else round(p50 * lots.uniform(1.25, 1.45), 1)
    late = int(turns * (0.083 if pop == SLOW else lots.uniform(0, 0.03)))
    return {
        "turns": turns, "timed": turns, "judged": turns, "p50_ms": p50 if turns else None,
        "p95_ms": p95 if turns else None, "late": late, "cut_ins": int(turns * lots.uniform(0, 0.03)),
        "missed": int(turns * lots.uniform(0, 0.004)), "lag_ms": round(lots.uniform(0.6, 9), 1),
    }  # fmt: skip


def _placed(number: int, lots: Random) -> dict[str, Any]:
    pop, *others = lots.sample(list(CITIES), 3)
    _, latitude, longitude = CITIES[pop]
    return {
        "call": f"rtc_{pop}1.{number}", "at": 1_700_000_000.0 - 7 * number, "tenant": "harbour-house", "kind": "webrtc",
        "place": {"latitude": latitude + 3, "longitude": longitude - 4}, "pop": f"{pop}1", "why": "nearest",
        "near_ms": round(lots.uniform(20, 70), 1), "turn_ms": round(lots.uniform(190, 280), 1),
        "others": [f"{other}1" for other in others],
    }  # fmt: skip


def answered(page: Page, told: dict[str, Any]) -> None:
    """Every request of this page: by the files of the directory's pages, and by `told`, as it is at that moment."""

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix(ADDRESS).split("?")[0]
        file = WEB / ("map.html" if path == "/map" else path.strip("/"))
        if path == "/v1/pops":
            route.fulfill(json=told)
        elif file.is_file() and Path(WEB) in file.parents:
            route.fulfill(path=file)
        else:
            route.fulfill(status=404, json={"error": {"message": "There is no such thing."}})

    page.route("**/*", answer)

"""The page needs nothing that it does not bring along, and its files fit each other. No browser, no server."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from tests.ingress.fake_pop import FakePop
from tests.web.node import WEB, needs_node, run
from voicepipe.conversation.timing import Hop, TurnRecord
from voicepipe.ingress.access import AccessControl
from voicepipe.ingress.api_keys import ClientSecrets
from voicepipe.operator_api import dashboard_http

FILES = sorted(path for path in WEB.iterdir() if path.is_file())
"""Those of our own: `vendor/` has Plotly's."""
MODULES = [path for path in FILES if path.suffix == ".js"]
STYLES = [path for path in FILES if path.suffix == ".css"]
MAX_LINES = 200
FOREIGN = re.compile(r"(?:https?:|wss?:|src=\"|href=\"|url\(\")//")


class Page(HTMLParser):
    """The ids, the labels' targets, the files and the other pages that a page names."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.meant: set[str] = set()
        self.files: set[str] = set()
        self.links: set[str] = set()
        self.inline: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("for", "aria-labelledby"):
                self.meant.update((value or "").split())
            elif name in ("src", "href"):
                (self.links if tag == "a" else self.files).add(value or "")
            elif name == "style" or name.startswith("on"):
                self.inline.append(f"{tag} {name}")


PAGES = {path.name: Page(path) for path in FILES if path.suffix == ".html"}
POP = FakePop()
SERVED = {
    getattr(route, "path", "") for route in dashboard_http.routes(POP, AccessControl(POP, ClientSecrets()), WEB)
} | {"/"}
"""What pages may name beside the files here."""
each_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


def name(path: Path) -> str:
    return path.relative_to(WEB).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name)
def test_files_are_short_and_load_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert len(text.splitlines()) <= MAX_LINES
    assert not FOREIGN.search(text)


@each_page
def test_what_a_page_names_is_there(page: Page) -> None:
    assert page.files
    for file in page.files - SERVED:
        assert (WEB / file).is_file(), file
    assert page.links <= SERVED


def test_no_style_sheet_is_left_over() -> None:
    assert {name(path) for path in STYLES} <= set().union(*(page.files for page in PAGES.values()))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_modules_import_files_and_names_that_are_there(path: Path) -> None:
    for names, file in re.findall(r"import \{([^}]*)\} from \"(.*?)\"", path.read_text()):
        exported = set(re.findall(r"^export (?:async )?(?:class|function|const) (\w+)", (WEB / file).read_text(), re.M))
        assert {imported.strip() for imported in names.split(",")} <= exported


@each_page
def test_every_id_is_there_once(page: Page) -> None:
    assert len(set(page.ids)) == len(page.ids)
    assert page.meant <= set(page.ids)


def test_every_id_that_is_meant_exists() -> None:
    ids = {id for page in PAGES.values() for id in page.ids}
    in_modules = {id for path in MODULES for id in re.findall(r"\$\(\"([\w-]+)\"\)", path.read_text())}
    in_styles = {id for path in STYLES for id in re.findall(r"#([a-z][\w-]*)[^;]*\{", path.read_text())}
    assert in_modules
    assert in_modules | in_styles <= ids


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_nothing_that_is_said_becomes_markup(path: Path) -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", path.read_text())


@pytest.mark.parametrize("file", PAGES)
def test_a_page_allows_no_code_but_its_own(file: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy"\s+content="(.*?)"', (WEB / file).read_text())
    assert "default-src 'self'" in policy and "script-src" not in policy
    assert not PAGES[file].inline  # the policy would drop it


# With Node.js: the parts that need no browser.


PARSE = """
    import { readFileSync } from "node:fs";
    import { SourceTextModule } from "node:vm";

    const wrong = {};
    for (const name of %s) {
      try {
        new SourceTextModule(readFileSync(name, "utf8"), { identifier: name });
      } catch (error) {
        wrong[name] = `${error}`;
      }
    }
    console.log(JSON.stringify(wrong));
"""


@needs_node
def test_modules_parse(beside: Path) -> None:
    assert run(beside, PARSE % json.dumps([name(path) for path in MODULES]), "--experimental-vm-modules") == {}
    (beside / "broken.js").write_text("const = 1;\n")
    assert run(beside, PARSE % '["broken.js"]', "--experimental-vm-modules").keys() == {"broken.js"}


def turn() -> TurnRecord:
    """A turn as the server reports it: prepared at 60 ms of silence, confirmed at 130, heard at 140."""
    record = TurnRecord("turn_1", confident=True, endpoint="the sentence is complete", speculation="hit")
    stamps: dict[Hop, float] = {
        "voice_ended": 10.0, "settle": 10.06, "words": 10.08, "prepare": 10.08, "token": 10.09, "phrase": 10.1,
        "speech": 10.11, "commit": 10.13, "audible": 10.14,
    }  # fmt: skip
    for hop, when in stamps.items():
        record.stamp(hop, when)
    return record


@needs_node
def test_a_turn_as_the_server_reports_it_is_drawn_in_order_and_within_the_axis(beside: Path) -> None:
    response = {"metadata": {"voicepipe.turn": msgspec.json.encode(turn().summary()).decode()}}
    script = f"""
        import {{ BUDGET_MS, chipsOf, hiddenMs, isMeasured, recordOf, stagesOf, whyOf }} from "./turn.js";
        import {{ layout }} from "./waterfall.js";
        const record = recordOf({json.dumps(response)});
        console.log(JSON.stringify({{
          measured: isMeasured(record), chips: chipsOf(record).map((chip) => chip.text), why: whyOf(record),
          hidden: hiddenMs(stagesOf(record)), ...layout(stagesOf(record), BUDGET_MS),
        }}));
    """
    shown = run(beside, script)
    assert shown["measured"]
    assert shown["chips"] == ["within 300 ms", "prepared while listening"]
    assert shown["why"].startswith("It waited 130 ms")
    spans = [(row["kind"], row["from"], row["to"]) for row in shown["rows"]]
    assert spans == [("wait", 0, 130), ("asr", 60, 80), ("llm", 80, 100), ("tts", 100, 110), ("playout", 130, 140)]
    parts = [part for row in shown["rows"] for part in row["parts"]]
    assert all(0 <= part["left"] <= part["left"] + part["width"] <= 100 for part in parts)
    assert [part["hidden"] for part in parts] == [False, True, True, True, False]
    assert shown["hidden"] == 50 and "the engines had worked for 50 ms" in shown["why"]
    assert shown["wait"] < shown["budget"] < 100
    assert [tick["ms"] for tick in shown["ticks"]] == [0, 50, 100, 150, 200, 250, 300]


@needs_node
@pytest.mark.parametrize(
    ("spans", "parts", "hidden"),
    [
        # (asr, llm, tts), and what of each ran before and after a turn that was confirmed at 200 ms
        ([(60, 160), (30, 150), (150, 170)], [(100, 0), (120, 0), (20, 0)], 240),
        ([(60, 180), (180, 230), (230, 260)], [(120, 0), (20, 30), (0, 30)], 140),
        ([(-80, 90), (210, 230), (230, 250)], [(170, 0), (0, 20), (0, 20)], 170),
    ],
)
def test_what_the_wait_hides_is_told_apart_from_what_it_costs(
    spans: list[tuple[int, int]], parts: list[tuple[int, int]], hidden: int, beside: Path
) -> None:
    (settle, words), (prepare, phrase), (_, speech) = spans
    record = {"at_commit": 200, "at_audible": 260, "at_settle": settle, "at_words": words, "at_prepare": prepare}
    record |= {"at_phrase": phrase, "at_speech": speech}
    script = f"""
        import {{ hiddenMs, stagesOf }} from "./turn.js";
        const stages = stagesOf({json.dumps(record)});
        const parts = stages.slice(1, 4).map(({{ from, until, to }}) => [until - from, to - until]);
        console.log(JSON.stringify([parts, hiddenMs(stages)]));
    """
    assert run(beside, script) == [[list(part) for part in parts], hidden]


@needs_node
def test_voices_are_offered_by_language_the_agents_own_first(beside: Path) -> None:
    voices = [{"id": "de", "language": "de"}, {"id": "en-us", "language": "en-us"}, {"id": "x", "language": "?"}]
    voices += [{"id": "heart", "language": "en-gb"}]
    script = f"""
        import {{ voiceGroups }} from "./settings.js";
        console.log(JSON.stringify(voiceGroups({json.dumps(voices)}, "en")));
    """
    own, others = run(beside, script)
    assert own["label"] == "English"
    assert [voice["text"] for voice in own["voices"]] == ["American English (en-us)", "British English (heart)"]
    assert {voice["id"] for voice in others["voices"]} == {"de", "x"}


@needs_node
@pytest.mark.parametrize("metadata", [None, {}, {"voicepipe.turn": "{"}, {"voicepipe.turn": '{"by_request":true}'}])
def test_a_response_without_a_spoken_turn_is_no_turn(metadata: dict[str, str] | None, beside: Path) -> None:
    script = f"""
        import {{ isMeasured, recordOf }} from "./turn.js";
        console.log(isMeasured(recordOf({json.dumps({"metadata": metadata})})));
    """
    assert not run(beside, script)


@needs_node
def test_microphone_sound_keeps_its_pitch_and_level_at_24_khz(beside: Path) -> None:
    """The worklet on its own: 1 kHz at 48 and 44.1 kHz comes out as 1 kHz, and 15 kHz is not folded down to 9."""
    (rate_48, hertz_48, peak_48), (rate_44, hertz_44, peak_44), (_, _, peak_15) = run(
        beside,
        """
        let made, blocks;
        globalThis.AudioWorkletProcessor = class { port = { postMessage: ({ pcm }) => blocks.push(pcm) }; };
        globalThis.registerProcessor = (name, processor) => (made = processor);
        await import("./capture-worklet.js");
        const results = [];
        for (const [rate, hertz] of [[48000, 1000], [44100, 1000], [48000, 15000]]) {
          globalThis.sampleRate = rate;
          blocks = [];
          const capture = new made();
          for (let at = 0; at < rate; at += 128) {
            const sound = (_, i) => Math.sin((2 * Math.PI * hertz * (at + i)) / rate) / 2;
            capture.process([[Float32Array.from({ length: 128 }, sound)]]);
          }
          const pcm = blocks.flatMap((block) => [...new Int16Array(block)]).slice(4800);
          const crossings = pcm.filter((sample, i) => i && sample >= 0 !== pcm[i - 1] >= 0).length;
          results.push([blocks.length, ((crossings / 2) * 24000) / pcm.length, Math.max(...pcm)]);
        }
        console.log(JSON.stringify(results));
        """,
    )
    assert rate_48 in (49, 50) and rate_44 in (49, 50)  # blocks of 20 ms in a second
    assert hertz_48 == pytest.approx(1000, abs=3) and hertz_44 == pytest.approx(1000, abs=3)
    assert peak_48 == pytest.approx(16384, rel=0.01) and peak_44 == pytest.approx(16384, rel=0.01)
    assert peak_15 < 16384 / 100

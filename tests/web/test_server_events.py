"""What the page makes of the server's events: the language of what is said, by which a browser chooses fonts and screen
readers a voice. Run by Node.js, with a transcript of paper."""

import json
from pathlib import Path

from tests.web.node import copied, needs_node, run

pytestmark = needs_node

PAPER = """
    import { handlers } from "./server-events.js";

    const said = [];
    const transcript = {
      lang: "",
      callerSaid: (id, text, lang) => said.push([text, lang ?? null]),
      agentWords: (id, delta) => said.push([delta, transcript.lang]),
    };
    const on = handlers({ transcript, panel: {}, languageOf: () => "en" });
"""


def begins(language: str) -> dict[str, object]:
    return {"response": {"metadata": {"voicepipe.turn": json.dumps({"turn_id": "t", "language": language})}}}


def test_each_utterance_and_each_reply_has_its_language(tmp_path: Path) -> None:
    completed = "conversation.item.input_audio_transcription.completed"
    events = [
        ("session.created", {"session": {"model": "desk"}}),
        (completed, {"item_id": "u1", "transcript": "une table", "languages": [{"code": "fr"}]}),
        ("response.created", begins("fr")),
        ("response.output_text.delta", {"item_id": "a1", "delta": "Bonjour"}),
        (completed, {"item_id": "u2", "transcript": "hm", "languages": []}),
        (completed, {"item_id": "u3", "transcript": "okay"}),
        ("response.created", begins("")),
        ("response.output_text.delta", {"item_id": "a2", "delta": "Bien"}),
    ]
    script = f"""{PAPER}
    for (const [type, event] of {json.dumps(events)}) on[type](event);
    console.log(JSON.stringify(said));
    """
    assert run(copied(tmp_path / "web"), script) == [
        ["une table", "fr"], ["Bonjour", "fr"], ["hm", None], ["okay", None], ["Bien", "fr"],
    ]  # fmt: skip

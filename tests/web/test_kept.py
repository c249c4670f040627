"""Kept calls as the page shows them: its module, run by Node.js with elements of paper."""

from pathlib import Path

from tests.web.node import copied, needs_node, run

pytestmark = needs_node

FACTS = """
    import { factsOf } from "./kept.js";

    globalThis.document = { createElement: () => ({}) };
    const call = { began: 1, ended: 2, reason: "caller", agent: "desk", pop: "fra", region: "eu", tenant: "acme",
      line: "sip", caller: "+49", called: "", turns: 1, p50_ms: null, p95_ms: null, late: 0, missed: 0, cut_ins: 0,
      cost: null };
    const shown = (more) => {
      const texts = factsOf({ ...call, ...more }).map(({ textContent }) => textContent);
      return texts.includes("Variables") ? texts[texts.indexOf("Variables") + 1] : null;
    };
    const variables = { plan: "gold", none: "", patient: "Ann <b>" };
    console.log(JSON.stringify([shown({ variables }), shown({ variables: { none: "" } }), shown({})]));
"""


def test_a_call_shows_the_values_of_its_agent_s_variables(tmp_path: Path) -> None:
    assert run(copied(tmp_path / "web"), FACTS) == ["plan: gold, patient: Ann <b>", None, None]

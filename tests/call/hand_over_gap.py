"""What a hand-over costs the caller: `python -m tests.call.hand_over_gap [--turns N]`, two minutes.

One PoP with the default recogniser and voice, and a small server of the OpenAI kind that writes as a model on a GPU
does. The same recorded questions are asked in turn of an agent that answers, and of one that hands over without a word
to the one that answers. What is told is the heard gap (DESIGN.md, section 1).
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from latency_probes import clips
from latency_probes.conversation import greeting_over
from latency_probes.own_server import started
from latency_probes.realtime import RealtimeCaller
from tests.engines.openai_server import DONE, Event, Json, Server, called, chunk, said, serving
from tests.support.paths import ROOT
from tests.support.waiting import until

FIRST_S, TOKEN_S = 0.06, 0.01
"""Seconds to the first token, and from token to token: a model of 8 billion parameters on a busy GPU."""
POP = """
[pop]
budget_ms = 600000
agents = "agents"
default_agent = "answers"
[engines]
llm = "openai"
[openai]
base_url = "{url}"
"""
AGENTS = {
    "answers": 'name = "answers"\ngreeting = "Hello."\ninstructions = "You answer."\n',
    "hands": 'name = "hands"\ngreeting = "Hello."\ninstructions = "You hand over."\nhand_over.answers.when = "Now."\n',
}
ANSWER = "We are open every day from nine in the morning until six in the evening.".split()


def model(body: Json) -> list[Event]:
    """Hands over where it is told to, and answers otherwise."""
    if "You hand over." in body["messages"][0]["content"]:
        events = [*called("c1", "hand_over", '{"to": ', '"answers"}'), chunk("tool_calls"), DONE]
    else:
        events = said(*(f"{word} " for word in ANSWER))
    slowed: list[Event] = [FIRST_S]
    for event in events:
        slowed += [event, TOKEN_S]
    return slowed


async def heard_gap_ms(url: str, agent: str, clip: clips.Utterance) -> float:
    """Of one question, in a call of its own."""
    caller = RealtimeCaller(f"{url}?model={agent}", "quiet", 1)
    await caller.dial()
    try:
        await greeting_over(caller)
        speech = await asyncio.to_thread(clips.speech, clip, 1)
        line, before = caller.timeline, len(caller.timeline.of_type("response.done"))
        last = caller.say(speech.pcm) + speech.voiced[1] - 1
        await until(lambda: len(line.of_type("response.done")) > before)
        reply = [each for each in line.replies.values() if each.first_audible][-1]
        assert reply.first_audible
        return 1000 * (reply.first_audible.arrived - line.sent_at(last))
    finally:
        await caller.hang_up()


async def measure(url: str, turns: int) -> None:
    finished = [each for each in clips.load(["finished"]) if each.noise == "quiet"][:turns]
    gaps: dict[str, list[float]] = {"answers": [], "hands": []}
    for number, clip in enumerate(finished):
        for agent in sorted(gaps, reverse=bool(number % 2)):
            gaps[agent].append(await heard_gap_ms(url, agent, clip))
        shown = ", ".join(f"{agent} {its[-1]:.0f} ms" for agent, its in gaps.items())
        print(f"{number + 1} of {len(finished)}: {shown}", flush=True)
    later = [handed - plain for handed, plain in zip(gaps["hands"], gaps["answers"], strict=True)]
    print(f"answers: p50 {median(gaps['answers']):.0f} ms; hands over: p50 {median(gaps['hands']):.0f} ms; "
          f"later: p50 {median(later):.0f}, at most {max(later):.0f} ms")  # fmt: skip


async def main(turns: int) -> None:
    server = Server(model)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agents").mkdir()
        for agent, text in AGENTS.items():
            (folder / "agents" / f"{agent}.toml").write_text(text)
        async with serving(server) as url:
            (folder / "pop.toml").write_text(POP.format(url=url))
            command = (sys.executable, "-m", "voicepipe", "pop", "--port", "0", "--config", str(folder / "pop.toml"))

            def run() -> None:
                with started(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as pop:
                    asyncio.run(measure(pop.url.replace("http", "ws", 1) + "/v1/realtime", turns))

            await asyncio.to_thread(run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=12)
    asyncio.run(main(parser.parse_args().turns))

"""The command line, as someone at a terminal meets it."""

import argparse
import asyncio
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from latency_probes.own_server import COMMAND, started
from tests.records.typist import Typist
from tests.support.paths import ROOT
from tests.support.ports import free_port
from voicepipe import __version__, config
from voicepipe.commands import cli
from voicepipe.doctor import of_traces
from voicepipe.engines import packages
from voicepipe.engines.llm import local_servers
from voicepipe.engines.llm.local_servers import LocalServer
from voicepipe.observe import traces

ALL_SCRIPTED = '[engines]\nvad = "scripted"\nasr = "scripted"\nllm = "scripted"\ntts = "scripted"\n'


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of one command."""
    try:
        status = cli.main(argv)
    except SystemExit as stop:
        status = int(stop.code or 0)
    return status, *capsys.readouterr()


@pytest.mark.parametrize(
    "argv", [("--help",), ("demo", "--help"), ("pop", "--help"), ("check", "--help"), ("doctor", "--help")]
)
def test_help(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]) -> None:
    status, out, _ = said(capsys, *argv)
    assert status == 0
    assert out.startswith("usage: voicepipe")


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from voicepipe.commands import cli; cli.parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "msgspec", "rich", "asyncio", "onnxruntime"} & set(loaded)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--version")[1] == f"voicepipe {__version__}\n"


@pytest.mark.parametrize("argv", [(), ("fly",), ("demo", "--port", "high"), ("demo", "--port", "70000"), ("check",)])
def test_usage_errors(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]) -> None:
    status, _, err = said(capsys, *argv)
    assert status == 2
    assert "voicepipe" in err


@pytest.mark.parametrize("command", ["demo", "pop"])
def test_a_taken_port_names_the_way_out(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        status, _, err = said(capsys, command, "--port", str(port))
    assert status == 2
    expected = f"port {port} on 127.0.0.1 is taken by another program; choose another, such as --port {port + 1}"
    assert err == f"voicepipe: --port: {expected}\n"


@pytest.mark.parametrize("command", ["demo", "pop"])
def test_other_machines_may_not_call_without_a_key(capsys: pytest.CaptureFixture[str], command: str) -> None:
    status, _, err = said(capsys, command, "--host", "0.0.0.0", "--port", "0")
    assert status == 2
    assert err.count("\n") == 1
    assert "lets other machines call" in err


def test_a_key_that_is_not_set(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[[tenants]]\nname = 'a'\nkey_env = 'VOICEPIPE_TEST_UNSET'")
    status, _, err = said(capsys, "pop", "--config", str(file), "--host", "0.0.0.0", "--port", "0")
    assert status == 2
    assert "the environment variable VOICEPIPE_TEST_UNSET is not set here" in err


def test_an_address_of_another_machine(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capsys, "demo", "--host", "192.0.2.1", "--port", "0")
    assert status == 2
    assert "cannot listen on 192.0.2.1" in err


def test_a_missing_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = said(capsys, "pop", "--config", str(tmp_path / "none.toml"))
    assert status == 2
    assert err.startswith(f"voicepipe: {tmp_path / 'none.toml'}: cannot be read: No such file or directory; ")
    assert err.count("\n") == 1


# --- check ------------------------------------------------------------------------------------------------------


def test_check_tells_the_kinds_apart(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(ROOT / name) for name in ("configs/default.toml", "pops/local.toml", "configs/agents/front-desk.toml")]
    kinds = ("configuration", "manifest", "agent")
    status, out, _ = said(capsys, "check", *files)
    assert out.splitlines() == [f"{file}: ok ({kind})" for file, kind in zip(files, kinds, strict=True)]
    assert status == 0


def test_check_reads_what_a_pop_is_started_with_as_a_whole(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By itself each of the two files warns of what the other one sets."""
    (shared := tmp_path / "my.toml").write_text(
        ALL_SCRIPTED + "[[tenants]]\nname = 'a'\nkey_env = 'VOICEPIPE_TEST_A'\n"
    )
    (tmp_path / "pops").mkdir()
    (pop := tmp_path / "pops" / "fra1.toml").write_text("[http]\nhost = '0.0.0.0'\n")
    monkeypatch.setenv("VOICEPIPE_TEST_A", "secret")
    files = ("--config", str(shared), "--pop", str(pop))
    assert said(capsys, "check", "--strict", *files) == (0, f"{shared} with {pop}: ok (a whole PoP)\n", "")
    status, out, _ = said(capsys, "check", "--strict", str(shared), str(pop))
    assert status == 1 and "lets other machines call" in out
    monkeypatch.delenv("VOICEPIPE_TEST_A")
    status, out, _ = said(capsys, "check", "--strict", *files)
    assert status == 1 and f"{shared} with {pop}: warning: tenants[0].key_env: " in out
    assert said(capsys, "check", *files)[0] == 0
    pop.write_text("[http]\nhost = 0\n")
    status, out, _ = said(capsys, "check", *files)
    assert status == 2 and str(pop) in out
    assert said(capsys, "check")[0] == 2


def test_check_says_who_answers_for_an_agent_without_intents(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agents").mkdir()
    file = tmp_path / "agents" / "clinic.toml"
    file.write_text('name = "clinic"\ninstructions = "You answer for a practice."\n')

    def noted(found: LocalServer | None, *argv: str) -> str:
        async def look() -> LocalServer | None:
            return found

        monkeypatch.setattr(local_servers, "look", look)
        assert cli.main(["check", *argv]) == 0
        verdict, note = capsys.readouterr().out.splitlines()
        assert verdict.startswith(f"{argv[0]}: ok (")
        return note.removeprefix(f"{argv[0]}: note: ")

    lacks = noted(None, str(file))
    assert lacks.startswith("Agent clinic has no [[intents]], and so needs a language model")
    assert "ollama run" in lacks and "voicepipe demo --llm URL" in lacks
    found = LocalServer("Ollama", "http://127.0.0.1:11434/v1", ("llama3.2",))
    by = "Agent clinic is answered by llama3.2 of Ollama at http://127.0.0.1:11434/v1"
    assert noted(found, str(file)) == by
    settings = tmp_path / "my.toml"
    settings.write_text('[pop]\nagents = "agents"\ndefault_agent = "clinic"\n')
    assert noted(found, str(settings)) == by
    settings.write_text(settings.read_text() + '[engines]\nllm = "frontdesk"\n')
    assert 'set engines.llm to "auto"' in noted(found, str(settings))
    file.write_text(f'model = "qwen"\n{file.read_text()}')
    of = "Ollama at http://127.0.0.1:11434/v1"
    assert noted(found, str(file)) == f"Agent clinic names the model qwen, which {of} does not list; it lists llama3.2"
    several = LocalServer("Ollama", "http://127.0.0.1:11434/v1", ("llama3.2", "qwen:latest"))
    assert noted(several, str(file)) == f"Agent clinic is answered by qwen of {of}"


def test_check_says_which_voice_is_not_there_and_in_which_file_an_agent_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "desk.toml").write_text((ROOT / "tests/models/desk/front-desk.toml").read_text())
    agent = tmp_path / "mine" / "desk.toml"
    agent.write_text('voice = "en-uss"\n' + agent.read_text())
    settings = tmp_path / "my.toml"
    settings.write_text('[pop]\nagents = "mine"\n')
    status, out, _ = said(capsys, "check", str(settings))
    assert status == 0
    assert "note: Agent front-desk speaks with the default voice, since there is no voice 'en-uss'" in out
    assert "such as en-us" in out
    settings.write_text('[pop]\nagents = "mine"\ndefault_agent = "clinic"\n')
    status, out, _ = said(capsys, "check", str(settings))
    assert status == 2
    assert out.startswith(f"{settings}: pop.default_agent: there is no agent clinic in {tmp_path / 'mine'}")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--model", "mini"], "--model names a model of --llm"),
        (["--pops", "2", "--agent", "configs/agents"], "leave --agent"),
        (["--pops", "2", "--config", "configs/scripted.toml"], "leave --config"),
        (["--llm", "127.0.0.1:11434"], "is no address; give one such as http://127.0.0.1:11434/v1"),
    ],
)
def test_options_of_the_demo_that_cannot_be(capsys: pytest.CaptureFixture[str], argv: list[str], said: str) -> None:
    assert cli.main(["demo", *argv]) == 2
    assert said in capsys.readouterr().err


def test_a_configuration_that_no_demo_can_have(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("PEM")
    mine = tmp_path / "mine.toml"
    mine.write_text('[http]\ncert = "cert.pem"\nkey = "key.pem"\n')
    assert cli.main(["demo", "--config", str(mine)]) == 2
    assert f"{mine}: http.cert: a demo calls itself without TLS" in capsys.readouterr().err


def test_a_server_named_to_the_demo_gets_no_key_of_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[openai]\nbase_url = "https://models.example/v1"\napi_key_env = "MODELS_KEY"\n')
    asked = argparse.Namespace(llm="http://127.0.0.1:11434", model="mini")
    openai = cli._with_llm(asked, config.load(mine)).openai
    assert (openai.base_url, openai.model, openai.api_key_env) == ("http://127.0.0.1:11434/v1", "mini", "")


def test_check_reads_directories(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "check", str(ROOT / "configs"), *map(str, sorted((ROOT / "pops").glob("*.toml"))))
    assert status == 0
    assert len(out.splitlines()) >= 4


def test_check_says_every_problem_and_goes_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad, agent, good = tmp_path / "bad.toml", tmp_path / "agent.toml", tmp_path / "good.toml"
    bad.write_text("[pop]\nslots = -1\n[turn]\nduck_db = 3")
    agent.write_text("name = 'desk'\nvoise = 'x'")
    good.write_text("[pop]\nslots = 2")
    status, out, _ = said(capsys, "check", str(bad), str(agent), str(good))
    assert status == 2
    lines = out.splitlines()
    assert lines[0].startswith(f"{bad}: pop.slots: ")
    assert lines[1].startswith(f"{bad}: turn.duck_db: ")
    assert lines[2].startswith(f"{agent}: voise: there is no such key; did you mean voice?")
    assert lines[3] == f"{good}: ok (configuration)"


@pytest.mark.parametrize(
    ("tables", "said_so"),
    [
        ("[http]\nhost = '0.0.0.0'", "http.host = '0.0.0.0' lets other machines call, and no tenant has a key"),
        ("[sip]\nport = 5060\nhost = '0.0.0.0'", "sip.host = '0.0.0.0' lets other machines call, and nobody is named"),
        ("[http]\nhost = '::1'\n[sip]\nport = 5060", "http.host = '::1' is an IPv6 address"),
        ("[sip]\nport = 5060\nhost = '0.0.0.0'\n[[sip.trunks]]\nname = 'a'\naddresses = ['192.0.2.1']", ""),
        ("[sip]\nhost = '0.0.0.0'", ""),
        ("[telephony]\npublic_url = 'http://a.example'", "telephony.public_url = 'http://a.example' would let calls"),
        ("[telephony]\npublic_url = 'https://a.example'", ""),
        ("[telephony]\npublic_url = 'http://localhost:8080'", ""),
    ],
)
def test_check_warns_of_what_a_pop_would_refuse(
    tables: str, said_so: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "my.toml"
    file.write_text(tables)
    status, out, _ = said(capsys, "check", str(file))
    assert status == 0, "another file may add what is missing"
    assert (f"{file}: warning: by itself this is refused: {said_so}" in out) == bool(said_so)
    assert out.splitlines()[-1] == f"{file}: ok (configuration)"


@pytest.mark.parametrize(("streams", "warned"), [(30, True), (60, False)])
def test_check_warns_of_fewer_streams_than_calls(
    streams: int, warned: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "my.toml"
    file.write_text(f"[engines]\nasr = 'nemotron'\n[pop]\nslots = 60\n[nemotron]\nstreams = {streams}")
    status, out, _ = said(capsys, "check", str(file))
    assert status == 0
    assert (f"{file}: warning: nemotron.streams is {streams}, and pop.slots is 60" in out) == warned


def test_check_warns_of_secrets_that_are_not_in_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[twilio]\nauth_token_env = 'A_TOKEN'\n[[sip.users]]\nname = 'desk'\npassword_env = 'A_PASSWORD'"
                    "\n[[sip.users]]\nname = 'hall'\npassword_env = 'B_PASSWORD'")  # fmt: skip
    monkeypatch.setenv("A_TOKEN", "t")
    _, out, _ = said(capsys, "check", str(file))
    assert "A_TOKEN" not in out
    assert f"{file}: warning: sip.users[0].password_env: the environment variable A_PASSWORD is not set here" in out
    assert f"{file}: warning: sip.users[1].password_env: the environment variable B_PASSWORD is not set here" in out


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("[engines]\ntts = 'coqui'", "coqui: coqui-tts needs an environment of its own; make one"),
        ("[engines]\ntts = 'coqui'\n[coqui]\npython = '/none/python'", "coqui: there is no interpreter '/none/python'"),
        ("[engines]\nllm = 'openai'", "openai: openai.base_url is empty; set it to the server's address"),
        ("[engines]\nllm = 'vllm'", "vllm: its package no_such_package is not installed; pip install no_such_package"),
    ],
)
def test_check_warns_of_what_engines_lack(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: str, said: str
) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {"vllm": "no_such_package"})
    file = tmp_path / "my.toml"
    file.write_text(tables)
    assert cli.main(["check", str(file)]) == 0
    assert f"{file}: warning: {said}" in capsys.readouterr().out


def test_check_and_doctor_say_what_traces_lack(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "my.toml"
    file.write_text('[traces]\nendpoint = "http://127.0.0.1:4318"')
    assert traces.problem(config.load(file)) == "" and cli.main(["check", str(file)]) == 0
    assert "OpenTelemetry" not in capsys.readouterr().out
    [row] = of_traces(config.load(file))
    assert (row.state, row.detail) == ("ok", "they go to http://127.0.0.1:4318")
    for missing in ("no_such_package", "no_such_package.sdk"):
        monkeypatch.setattr(traces, "NEEDED", (missing,))
        assert cli.main(["check", str(file)]) == 0
        said = "traces: OpenTelemetry is not installed; pip install 'voicepipe-pop[traces]'"
        assert f"{file}: warning: {said}" in capsys.readouterr().out
    [row] = of_traces(config.load(file))
    assert row.state == "broken" and row.way_out.startswith("pip install 'voicepipe-pop[traces]'")
    assert not list(of_traces(config.Config()))


@pytest.mark.parametrize(
    ("table", "last", "room"),
    [("sip", 20_005, 3), ("sip", 20_119, None), ("webrtc", 20_005, 6), ("webrtc", 20_059, None)],
)
def test_check_warns_of_too_few_ports_for_media(
    table: str, last: int, room: int | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "my.toml"
    file.write_text(f"[{table}]\nfirst_port = 20000\nlast_port = {last}\n[pop]\nslots = 60")
    _, out, _ = said(capsys, "check", str(file))
    told = f"{file}: warning: {table}.first_port to last_port have room for {room} calls, and pop.slots is 60"
    told += ", unless another file sets one of these"
    assert out.splitlines() == [*([told] if room else []), f"{file}: ok (configuration)"]


def test_strangers_who_could_phone_keep_a_pop_from_starting(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("[sip]\nhost = '0.0.0.0'")
    status, _, err = said(capsys, "pop", "--config", str(file), "--port", "0", "--sip-port", "0")
    assert status == 2 and "nobody is named who may" in err


def test_an_option_that_lets_phones_in_wants_to_know_whose_calls_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "my.toml"
    file.write_text("".join(f"[[tenants]]\nname = '{name}'\nkey_env = 'KEY_OF_{name}'\n" for name in "ab"))
    for name in "ab":
        monkeypatch.setenv(f"KEY_OF_{name}", name * 8)
    status, _, err = said(capsys, "pop", "--config", str(file), "--port", "0", "--sip-port", "0")
    assert status == 2 and "routes: say whose phone calls are in [[routes]]" in err


# --- whole processes --------------------------------------------------------------------------------------------


def voicepipe(*argv: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "voicepipe", *argv]
    return subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env={**os.environ, "COLUMNS": "200"}
    )


def demo_once(*argv: str) -> tuple[str, str]:
    """What a demo that went well has printed: stdout, stderr. A busy machine may answer the first calls too late."""
    for _ in range(3):
        demo = voicepipe("demo", "--once", "--port", "0", *argv)
        out, err = demo.communicate(timeout=120)
        if demo.returncode == 0:
            return out, err
    pytest.fail(out + err)


@pytest.mark.e2e
def test_the_demo_answers_its_own_call() -> None:
    out, err = demo_once()
    for shown in (
        "ready in ",
        "asked ",
        "heard ",
        "answered ",
        "The caller heard the answer ",
        "endpointing ",
        "budget ",
    ):
        assert shown in out
    assert "Traceback" not in err


AGENT = """
name = "shop"
greeting = "Good day."
[[intents]]
name = "hours"
examples = ["when are you open", "could you tell me your opening times", "are you open on sundays"]
reply = "We are open from nine to five."
"""


@pytest.mark.e2e
def test_the_demo_calls_an_agent_of_ones_own_once(tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(AGENT)
    (tmp_path / "broken.toml").write_text("name = ")
    out, err = demo_once("--agent", str(tmp_path / "shop.toml"))
    assert "asked " in out and "answered  We are open from nine to five." in out
    assert "broken.toml" in err and "left out" in err


@pytest.mark.e2e
def test_an_agent_that_nobody_answers_for_is_not_called(tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text('name = "shop"\ninstructions = "You answer for a shop."\n')
    (tmp_path / "my.toml").write_text("[engines]\nllm = 'frontdesk'\n")
    demo = voicepipe(
        "demo", "--once", "--port", "0", "--config", str(tmp_path / "my.toml"), "--agent", str(tmp_path / "shop.toml")
    )
    out, err = demo.communicate(timeout=120)
    assert demo.returncode == 2 and "answered " not in out
    assert "voicepipe: Agent shop" in err and "Traceback" not in err


@pytest.mark.e2e
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_pop_ends_cleanly_on_a_signal(number: signal.Signals) -> None:
    pop = voicepipe("pop", "--pop", "pops/local.toml", "--port", "0")
    try:
        assert pop.stdout
        line = pop.stdout.readline()
        assert "local answers at http://127.0.0.1:" in line, pop.communicate(timeout=120)
        pop.send_signal(number)
        _, err = pop.communicate(timeout=120)
    finally:
        pop.kill()
    assert pop.returncode == 0
    assert "Traceback" not in err


@pytest.mark.e2e
async def test_a_pop_keeps_its_calls_over_a_signal_that_is_not_for_it(tmp_path: Path) -> None:
    (tmp_path / "pop.toml").write_text("[engines]\nasr = 'scripted'\nllm = 'scripted'\ntts = 'scripted'\n")
    command = (*COMMAND, "--config", str(tmp_path / "pop.toml"))
    context = started(command)
    pop = await asyncio.to_thread(context.__enter__)
    try:
        async with Typist(pop.url) as typist:
            for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                os.kill(pop.pid, number)
                await typist.asks(f"are you there after {number.name}")
            assert len(typist.told) == 3
            log = await asyncio.to_thread(pop.log.read_text)
        assert all(f"{name} is ignored" in log for name in ("SIGUSR1", "SIGUSR2")) and "were read again" in log
        async with Typist(pop.url) as typist:
            await typist.asks("do you take new calls")
    finally:
        await asyncio.to_thread(context.__exit__, *sys.exc_info())


@pytest.mark.e2e
def test_a_pop_outlives_its_terminal_and_the_demo_does_not(tmp_path: Path) -> None:
    (tmp_path / "pop.toml").write_text("[engines]\nasr = 'scripted'\nllm = 'scripted'\ntts = 'scripted'\n")
    for command, outlives in (("pop", True), ("demo", False)):
        port = free_port()
        argv = (sys.executable, "-m", "voicepipe", command, "--port", str(port), "--config", str(tmp_path / "pop.toml"))
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(ROOT)
            os.execv(argv[0], argv)
        ended = 0
        try:
            said = b""
            while b"Ctrl-C" not in said or not said.endswith(b"\n"):  # It answers, and has said so.
                said += os.read(terminal, 4096)
            os.close(terminal)
            for _ in range(20 if outlives else 600):
                time.sleep(0.1)
                ended, _ = os.waitpid(pid, os.WNOHANG)
                if ended:
                    break
            assert bool(ended) != outlives
            if outlives:
                assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
        finally:
            if not ended:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


@pytest.mark.e2e
def test_ctrl_c_while_starting_ends_without_a_traceback() -> None:
    pop = voicepipe("pop", "--port", "0")
    time.sleep(1.0)
    pop.send_signal(signal.SIGINT)
    _, err = pop.communicate(timeout=120)
    assert pop.returncode in (0, 130)
    assert "Traceback" not in err


HOOKS = '[hooks]\nafter_call = "https://example.com/"\nsecret_env = "OF_HOOKS"\n'
SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_check_tells_of_hooks_of_which_nobody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OF_HOOKS", SECRET)
    (agents := tmp_path / "mine").mkdir()
    (agents / "clinic.toml").write_text(f'name = "clinic"\n{HOOKS}')
    file = tmp_path / "my.toml"
    pop = '[pop]\nagents = "mine"\ndefault_agent = "clinic"\n'
    file.write_text(pop)
    status, out, _ = said(capsys, "check", str(file))
    assert status == 0
    assert f"{file}: warning: Agent clinic's hooks.after_call has no effect unless records.folder is set" in out
    assert said(capsys, "check", "--strict", str(file))[0] == 1
    file.write_text(f'{pop}[records]\nfolder = "kept"\n')
    status, out, _ = said(capsys, "check", "--strict", str(file))
    assert status == 0 and "warning" not in out
    status, out, _ = said(capsys, "check", "--strict", str(agents / "clinic.toml"))
    assert status == 0 and "note: Agent clinic: hooks.after_call works only at a PoP with records.folder" in out
    hooks = '{ after_call = "https://example.com/", secret_env = "OF_HOOKS" }'
    file.write_text(f'[[tenants]]\nname = "a"\nkey_env = "A"\nhooks = {hooks}\n')
    status, out, _ = said(capsys, "check", str(file))
    assert status == 2 and "tenants[0].hooks: needs records of calls" in out, "a PoP does not start with that"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[[tenants]]\nname = 'a'\nkey_env = 'NOT_SET'\n", "the environment variable NOT_SET is not set here"),
        ("[http]\nmetrics_key_env = 'NOT_SET'\n", "the environment variable NOT_SET is not set here"),
        ("[http]\nhost = '0.0.0.0'\n", "by itself this is refused"),
        ("[sip]\nfirst_port = 20000\nlast_port = 20009\n[pop]\nslots = 6\n", "have room for 5 calls"),
        ("[[sip.users]]\nname = 'ann'\npassword_env = 'SET'\n", "sip.port = 0 lets nobody call by SIP"),
        ("[[sip.trunks]]\nname = 'a'\naddresses = ['192.0.2.1']\n", "sip.port = 0 lets nobody call by SIP"),
        ("[[routes]]\ncalled = '+49*'\n", "routes has no effect unless phone calls come in"),
        ("[fleet]\neditions = 'kept'\n", "fleet.editions has no effect unless bus.servers is set"),
        ("[pop]\nslots = 3\n", ""),
    ],
)
def test_a_strict_check_fails_on_warnings(
    text: str, warning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    monkeypatch.setenv("SET", "a password")
    file = tmp_path / "my.toml"
    file.write_text(text)
    status, out, _ = said(capsys, "check", str(file))
    assert status == 0 and (f"{file}: warning: " in out) == bool(warning) and warning in out
    assert said(capsys, "check", "--strict", str(file)) == (1 if warning else 0, out, "")


def test_what_is_wrong_is_worse_than_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.toml").write_text("[pop]\nslots = -1\n")
    (tmp_path / "b.toml").write_text("[http]\nhost = '0.0.0.0'\n")
    assert [said(capsys, "check", *strict, str(tmp_path))[0] for strict in ((), ("--strict",))] == [2, 2]


def test_one_broken_agent_of_several_fails_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (agents := tmp_path / "mine").mkdir()
    (agents / "good.toml").write_text("name = 'front-desk'\n")
    (agents / "bad.toml").write_text("name = \n")
    (file := tmp_path / "my.toml").write_text('[pop]\nagents = "mine"\n')
    for checked in (agents, file):
        status, out, _ = said(capsys, "check", str(checked))
        assert status == 2 and "bad.toml: is not TOML" in out


def test_check_tells_of_a_hook_that_cannot_be_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_SUCH_HOOK", raising=False)
    file = tmp_path / "clinic.toml"
    hooks = '[hooks]\nafter_call = "https://example.com/"\nsecret_env = "NO_SUCH_HOOK"\n'
    file.write_text(f'name = "clinic"\n{hooks}')
    assert cli.main(["check", str(file)]) == 0
    assert "warning: Agent clinic: hooks.secret_env: the environment variable NO_SUCH_HOOK is not set" in (
        capsys.readouterr().out
    )


def signals(pid: int, field: str) -> int:
    """A set of signals of a process, as proc(5) has it."""
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{field}:")[2].split()[0], 16)


@pytest.mark.e2e
def test_a_reload_that_is_asked_for_while_a_pop_starts_does_not_end_it(tmp_path: Path) -> None:
    (tmp_path / "pop.toml").write_text("[engines]\nasr = 'scripted'\nllm = 'scripted'\ntts = 'scripted'\n")
    pop = voicepipe("pop", "--port", "0", "--config", str(tmp_path / "pop.toml"), "--log-format", "json")
    try:
        while not any(signals(pop.pid, field) & 1 << (signal.SIGHUP - 1) for field in ("SigIgn", "SigCgt")):
            time.sleep(0.005)
        pop.send_signal(signal.SIGHUP)
        assert pop.stdout
        assert "local answers at http://127.0.0.1:" in pop.stdout.readline()
        pop.send_signal(signal.SIGTERM)
        _, err = pop.communicate(timeout=120)
    finally:
        pop.kill()
    assert pop.returncode == 0
    assert all(json.loads(line)["pop"] == "local" for line in err.splitlines())


def test_why_a_command_ends_is_logged_as_the_rest(tmp_path: Path) -> None:
    (file := tmp_path / "pop.toml").write_text("[http]\nhost = '0.0.0.0'\nport = 0\n[log]\nformat = 'json'\n")
    ended = voicepipe("pop", "--config", str(file))
    _, err = ended.communicate(timeout=120)
    assert ended.returncode == 2
    assert "lets other machines call" in json.loads(err)["message"]

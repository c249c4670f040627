"""Mistakes that people make in files: each is told with the file, the key, and what helps."""

import asyncio
import socket
import sys
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import voicepipe.pop.pop_http  # noqa: F401  # A PoP imports it in its loop.
from voicepipe.commands import cli
from voicepipe.engines.llm import local_servers
from voicepipe.serving import runtime

AGENT = 'name = "clinic"\ninstructions = "You answer for a practice."\n'
INTENTS = '[[intents]]\nname = "hours"\nexamples = ["when are you open"]\nreply = "From nine to five."\n'
BOOKING = '[[intents]]\nname = "booking"\nexamples = ["a date please"]\nslots = { date = "For which day?" }\n'
TOOL = '[[tools]]\nname = "book"\n'
WEBHOOK = TOOL + 'webhook = { url = "https://bookings.example/book" }\n'
DAY = 'parameters = { type = "object", required = ["day"], properties = { day = { type = "string" } } }\n'
ASKING = f'{AGENT}[hooks]\nbefore_call = "https://crm.example/ask"\nagents = ["night"]\n'
OWN = '[pop]\nagents = "agents"\ndefault_agent = "clinic"\n'
TENANT = '[[tenants]]\nname = "{}"\nkey_env = "{}"\n'
SCRIPTED = '[engines]\nvad = "scripted"\nasr = "scripted"\n'
TAKEN = "45961"
"""In place of the port that somebody else has."""

POP = ("pop", "--port", "0", "--config")
"""The beginning of a command; else it is `check`."""


@dataclass(frozen=True, slots=True)
class Mistake:
    name: str
    files: dict[str, str | bytes]
    told: tuple[str, ...]
    """What the message has: the file, the key, what helps."""
    argv: tuple[str, ...] = ()
    """Empty: `check`, with the first file."""
    status: int = 2
    """0: a warning or a note, since another file or another machine may have what is missing."""


def in_config(name: str, text: str, *told: str, status: int = 2) -> Mistake:
    return Mistake(name, {"my.toml": text}, ("my.toml: ", *told), status=status)


def in_agent(name: str, text: str | bytes, *told: str, status: int = 2) -> Mistake:
    return Mistake(name, {"clinic.toml": text}, ("clinic.toml: ", *told), status=status)


def in_code(name: str, function: str, code: str, *told: str) -> Mistake:
    agent = f'{AGENT}{TOOL}function = "{function}"\n{DAY}'
    return Mistake(name, {"clinic.toml": agent, "tools.py": code}, ("clinic.toml: ", "tools[0].function: ", *told))


def of_intents(name: str, named: str, file: str, text: str, *told: str) -> Mistake:
    files: dict[str, str | bytes] = {"clinic.toml": f'{AGENT}intents_file = "{named}"\n', file: text}
    return Mistake(name, files, ("clinic.toml: intents_file: ", *told))


WRITING = [
    in_config("a misspelt key", "[turn]\nprepare = 3\n",
              "turn.prepare: there is no such key; did you mean prepare_ms?"),
    in_config("a misspelt table", "[turns]\nprepare_ms = 90\n", "turns: there is no such key; did you mean turn?"),
    in_config("a number in quotes", '[http]\nport = "8080"\n', "http.port: ", "a whole number", "leave the quotes out"),
    in_agent("a yes in quotes", f'{AGENT}end_call = "true"\n', "end_call: ", "true, false; leave the quotes out"),
    in_config("commas for a list", '[http]\norigins = "https://a.example, https://b.example"\n',
              "http.origins: ", "allowed: a list of text, in brackets [ ]"),
    in_config("seconds", "[endpoint]\nsure_ms = 0.14\n", "endpoint.sure_ms: cannot be 0.14", "in milliseconds"),
    in_agent("seconds for a tool", f"{AGENT}{WEBHOOK}timeout_ms = 8\n",
             "tools[0].timeout_ms: cannot be 8; allowed: a whole number, at least 100", "in milliseconds"),
    in_config("fewer than none", "[pop]\nslots = -1\n", "pop.slots: cannot be -1; allowed: a whole number, at least 0"),
    in_config("a key of another table", '[engines]\nllm = "vllm"\nmodel = "org/name"\n',
              "engines.model: there is no such key; there is one in ", "[vllm]"),
    in_agent("a key of the agent below a tool", f'{AGENT}{WEBHOOK}greeting = "Hello."\n',
             "tools[0].greeting: there is no such key; put greeting above the file's first [table]"),
    in_agent("a key of the agent below its transfers", f'{AGENT}[transfer]\nann = "+4930123456"\ngreeting = "Hello."\n',
             "transfer.greeting: ", "or put greeting above the file's first [table]"),
    in_agent("a key of a tool below its parameters",
             f'{AGENT}{WEBHOOK}[tools.parameters]\ntype = "object"\ntimeout_ms = 8000\n',
             "tools[0].parameters.timeout_ms: says nothing there; put it above [tools.parameters]"),
    in_config("a table for a list of them", TENANT.format("a", "A_KEY").replace("[[", "[").replace("]]", "]"),
              "tenants: ", "write [[tenants]] in place of [tenants]"),
    in_agent("another encoding", 'name = "clinic"\ngreeting = "Grüß Gott"\n'.encode("latin-1"),
             "is not UTF-8 text; save it as UTF-8"),
    in_agent("text without quotes", "name = clinic\n",
             "is not TOML: ", "line 1", "at name; put text between straight quotes"),
    in_agent("text that does not end", 'name = "clinic"\ninstructions = """\nYou answer.\n',
             "is not TOML: ", "at instructions; end the text with the quotes that it begins with"),
    in_config("a key twice", "[http]\nport = 8080\nport = 8081\n",
              "is not TOML: ", "line 3", "at port; it stands there twice; leave one of the two out"),
    in_config("a table twice", '[http]\nport = 8080\n[pop]\nslots = 3\n[http]\nhost = "::1"\n',
              "is not TOML: ", "at [http]; this table stands there twice; put its keys together"),
    in_config("dots in a number", "[limits]\ncall_ms = 3.600.000\n",
              "is not TOML: ", "at call_ms; ", "thousands as 3_600_000"),
    in_config("a comma in a number", "[vad]\nstart_probability = 0,5\n",
              "is not TOML: ", "at start_probability; ", "fractions as 0.5"),
    in_config("a fraction without its zero", "[vad]\nstart_probability = .5\n",
              "is not TOML: ", "at start_probability; write 0.5"),
    in_agent("a yes in Python", f"end_call = True\n{AGENT}", "is not TOML: ", "at end_call; write true or false"),
    in_agent("a yes in words", f"{AGENT}end_call = yes", "is not TOML: ", "at end_call; write true or false"),
    in_agent("a key without its value", f"greeting =\n{AGENT}",
             "is not TOML: ", "line 1", "at greeting; nothing stands behind ="),
    in_agent("a last key without its value", f"{AGENT}greeting = # later\n\n",
             "is not TOML: ", "at greeting; nothing stands behind ="),
    in_agent("a list that does not end", f'{AGENT}interrupt = ["stop",\n',
             "is not TOML: ", "at interrupt; end the list with ]"),
]  # fmt: skip

FILES = [
    Mistake("a file that is not there", {}, ("nowhere.toml: cannot be read: No such file", "give the path of a TOML"),
            argv=("check", "nowhere.toml")),
    Mistake("a folder without files", {"empty/read.me": ""}, ("empty: holds no *.toml file; ",),
            argv=("check", "empty")),
    Mistake("a path from another folder", {"etc/my.toml": '[pop]\nagents = "etc/agents"\n', "etc/agents/a.toml": AGENT},
            ("etc/my.toml: pop.agents: there is no ", "etc/etc/agents; paths are relative to this file")),
    Mistake("a file for a folder", {"my.toml": '[pop]\nagents = "clinic.toml"\n', "clinic.toml": AGENT},
            ("my.toml: pop.agents: ", "clinic.toml holds no agent; give a folder with agents' *.toml files")),
    Mistake("a folder for a certificate", {"my.toml": '[http]\ncert = "tls"\nkey = "tls"\n', "tls/a.pem": ""},
            ("my.toml: warning: ", "http.cert and http.key cannot be used (", "a PEM chain and its key"), status=0),
    Mistake("a certificate that is none", {"my.toml": '[http]\ncert = "a.pem"\nkey = "a.pem"\n', "a.pem": "-"},
            ("my.toml: http.cert and http.key cannot be used (", "they name a PEM chain and its key"),
            argv=(*POP, "my.toml")),
    Mistake("a directory's key that is none", {"my.toml": '[fleet]\nkeys = ["a.pem"]\n', "a.pem": "-"},
            ("my.toml: fleet.keys: ", "is no Ed25519 public key; make one"), argv=(*POP, "my.toml")),
    Mistake("an agent for a configuration", {"clinic.toml": AGENT},
            ("clinic.toml: name: this file is an agent; ", "pop.agents", "voicepipe demo --agent"),
            argv=(*POP, "clinic.toml")),
    Mistake("a configuration for an agent", {"my.toml": "[pop]\nslots = 3\n"},
            ("my.toml: pop: this file is a PoP's configuration; `voicepipe pop --config` runs it",),
            argv=("demo", "--port", "0", "--agent", "my.toml")),
    Mistake("a configuration for a manifest", {"my.toml": SCRIPTED},
            ("my.toml: engines: is not for a PoP's manifest; put it into the configuration (--config)",),
            argv=("pop", "--port", "0", "--pop", "my.toml")),
    Mistake("a directory's configuration for a PoP's", {"my.toml": '[directory]\nkey = "a.pem"\n', "a.pem": ""},
            ("my.toml: directory: this file is a directory's configuration; `voicepipe directory --config` runs it",),
            argv=(*POP, "my.toml")),
    Mistake("a PoP's configuration for a directory's", {"my.toml": SCRIPTED},
            ("my.toml: engines: this file is a PoP's configuration; `voicepipe pop --config` runs it",),
            argv=("directory", "--port", "0", "--config", "my.toml")),
    Mistake("a directory's whole configuration for a PoP's",
            {"my.toml": '[http]\nport = 8080\n[directory]\nkey = "a.pem"\n', "a.pem": ""},
            ("my.toml: directory: this file is a directory's configuration; `voicepipe directory --config` runs it",),
            argv=(*POP, "my.toml")),
    Mistake("a PoP's whole configuration for a directory's", {"my.toml": f"[http]\nport = 8080\n{SCRIPTED}"},
            ("my.toml: engines: this file is a PoP's configuration; `voicepipe pop --config` runs it",),
            argv=("directory", "--port", "0", "--config", "my.toml")),
    Mistake("a misspelt table of a directory", {"my.toml": '[directry]\nkey = "a.pem"\n[http]\nport = 8080\n'},
            ("my.toml: directry: there is no such key; did you mean directory?",),
            argv=("directory", "--port", "0", "--config", "my.toml")),
    Mistake("a name above a manifest", {"fra1.toml": 'name = "fra1"\n[http]\nport = 8080\n'},
            ("fra1.toml: name: there is no such key; ",), argv=("pop", "--port", "0", "--pop", "fra1.toml")),
    Mistake("the same, where manifests lie", {"pops/fra1.toml": 'name = "fra1"\n[http]\nport = 8080\n'},
            ("pops/fra1.toml: name: there is no such key; allowed: pop, ",)),
    Mistake("times that two files set", {"my.toml": "[ladder]\nacknowledge_ms = 3000\n",
                                         "fra1.toml": "[ladder]\nfallback_ms = 2000\n"},
            ("my.toml with fra1.toml: ladder.acknowledge_ms: cannot be 3000, more than ladder.fallback_ms, ",),
            argv=(*POP, "my.toml", "--pop", "fra1.toml")),
]  # fmt: skip

AGENTS = [
    Mistake("a default agent that is not there", {"my.toml": '[pop]\nagents = "agents"\n', "agents/clinic.toml": AGENT},
            ("my.toml: pop.default_agent: there is no agent front-desk in ", "agents; allowed: clinic")),
    Mistake("the same, at the start", {"my.toml": f'{SCRIPTED}[pop]\nagents = "agents"\n', "agents/clinic.toml": AGENT},
            ("my.toml: pop.default_agent: there is no agent front-desk in ", "agents; allowed: clinic"),
            argv=(*POP, "my.toml")),
    Mistake("a route's agent that is not there",
            {"my.toml": f'{OWN}[[routes]]\ncalled = "+49*"\nagent = "clinik"\n', "agents/clinic.toml": AGENT},
            ("my.toml: routes[0].agent: there is no agent clinik in ", "agents; allowed: clinic")),
    Mistake("two agents of one name", {"agents/clinic.toml": AGENT, "agents/copy.toml": AGENT},
            ("agents/copy.toml: name: clinic is taken by agents/clinic.toml; every agent needs a name of its own",),
            argv=("check", "agents")),
    Mistake("a hook's agent that is not there", {"agents/clinic.toml": ASKING},
            ("agents/clinic.toml: hooks.agents: there is no agent night; allowed: clinic",), argv=("check", "agents")),
    in_agent("an agent that nobody is", f'{AGENT}hand_over.night = {{ when = "At night." }}\n',
             "hand_over.night: there is no agent night; allowed: clinic"),
    Mistake("a hook's agent that is not at a PoP", {"my.toml": OWN, "agents/clinic.toml": ASKING},
            ("agent clinic: hooks.agents: there is no agent night; allowed: clinic",)),
    Mistake("agents that no hook can return", {"clinic.toml": f'{AGENT}[hooks]\nagents = ["night"]\n'},
            ("clinic.toml: hooks.agents: before_call or incoming_call says which of them answers; set one, or",)),
    of_intents("intents that are not there", "intents/clinic.toml", "tools.py", "",
               "intents/clinic.toml: cannot be read: No such file or directory; give the path of a TOML file"),
    of_intents("intents beside the agents", "phrases.toml", "phrases.toml", INTENTS,
               "give a file one folder below, such as intents/clinic.toml"),
    of_intents("intents of another shape", "intents/clinic.toml", "intents/clinic.toml",
               INTENTS.replace("intents", "intent"), "intents/clinic.toml: intent: ", "did you mean intents?"),
    in_agent("a slot that is none", f'{AGENT}{BOOKING}reply = "On {{day}}."\n',
             "intents[0].reply: {day} is not a slot; allowed: date"),
    in_agent("a tool that is none", f'{AGENT}{INTENTS}tool = "bok"\n{WEBHOOK}',
             "intents[0].tool: there is no tool bok; allowed: book"),
    in_agent("a tool that needs what no slot asks for", f'{AGENT}{BOOKING}tool = "book"\n{WEBHOOK}{DAY}',
             "intents[0].tool: book requires day, which no slot asks for; its slots: date"),
    in_agent("two intents of one name", AGENT + INTENTS + INTENTS,
             "intents: 2 have the name hours; give each a name of its own"),
    in_agent("two tools of one name", AGENT + WEBHOOK + WEBHOOK, "tools: 2 have the name book; give each a name"),
    in_agent("a tool's name that models cannot call", AGENT + WEBHOOK.replace('"book"', '"book a table"'),
             'tools[0].name: cannot be "book a table"; allowed: up to 64 letters, digits, - and _'),
    in_agent("a webhook without its scheme", f'{AGENT}{TOOL}webhook = {{ url = "bookings.example/book" }}\n',
             "tools[0].webhook.url: ", "is no address; give one such as https://bookings.example/book"),
    in_agent("a header with a line break", AGENT + WEBHOOK.replace(" }", ', headers = { authorization = "a\\n" } }'),
             "tools[0].webhook.headers.authorization: is no HTTP header; leave out line breaks"),
    in_agent("a schema that is none",
             f'{AGENT}{WEBHOOK}parameters = {{ type = "object", properties.day = "string" }}\n',
             "tools[0].parameters.properties.day: is no JSON Schema: ", 'write an argument as properties = { day = {'),
    in_agent("a list that is a yes", f'{AGENT}{WEBHOOK}parameters = {{ required = true }}\n{BOOKING}tool = "book"\n',
             "tools[0].parameters.required: is no JSON Schema: True is not of type 'array'"),
    in_agent("a text for a list", f'{AGENT}{WEBHOOK}parameters = {{ required = "day" }}\n{BOOKING}tool = "book"\n',
             "tools[0].parameters.required: is no JSON Schema: 'day' is not of type 'array'"),
    in_agent("a type that is none", f'{AGENT}{WEBHOOK}parameters = {{ type = "objekt" }}\n',
             "tools[0].parameters.type: is no JSON Schema: ", "'object'"),
    in_agent("a schema of something else", f'{AGENT}{WEBHOOK}parameters = {{ type = "string" }}\n',
             "tools[0].parameters.type: cannot be 'string'; allowed: \"object\""),
    in_agent("a schema that stands elsewhere", AGENT + WEBHOOK +
             'parameters = { properties = { day = { "$ref" = "https://example.com/day.json" } } }\n',
             "tools[0].parameters.$ref: 'https://example.com/day.json' is not in this file, and nothing is fetched"),
    in_agent("a schema that is its own", f'{AGENT}{WEBHOOK}parameters = {{ "$ref" = "#" }}\n',
             "tools[0].parameters.$ref: leads to itself; no arguments can be checked by it"),
    in_agent("arguments without properties", f'{AGENT}{WEBHOOK}parameters = {{ day = {{ type = "string" }} }}\n',
             "tools[0].parameters.day: says nothing there; put arguments into properties"),
    in_agent("an argument that is required and unknown", AGENT + WEBHOOK + DAY.replace('["day"]', '["date"]'),
             "tools[0].parameters.required: date is none of the properties; allowed: day"),
    in_code("a module that is not there", "tool:book", "def book(day): ...\n",
            "there is no module tool; put tool.py beside the agent's file, or install it"),
    in_code("a module that fails", "tools:book", "import nowhere_at_all\n",
            "tools.py cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all' (line 1)"),
    Mistake("an interruptible function that nobody can stop",
            {"clinic.toml": f'{AGENT}{TOOL}function = "tools:book"\ninterruptible = true\n{DAY}',
             "tools.py": "def book(day): ...\n"},
            ("clinic.toml: warning: ", "tools[0].interruptible does not stop book", "async def"), status=0),
    in_code("a function that is not there", "tools:cook", "def book(day): ...\n",
            "has no function cook; its functions: book"),
    in_code("a function that takes something else", "tools:book", "def book(date): ...\n",
            "book takes no day, which the tool's parameters have; it takes date"),
    in_agent("a variable that nobody knows", f'greeting = "Hi {{{{caler}}}}."\n{AGENT}',
             "greeting: there is no variable {{caler}}; did you mean {{caller}}? allowed: caller, called, date, time"),
    in_agent("a variable in single braces", f'greeting = "Hi {{caller}}."\n{AGENT}',
             "warning: greeting: {caller} is read out as it stands; a variable is written {{caller}}", status=0),
    Mistake("a variable in single braces, at a PoP",
            {"my.toml": OWN + SCRIPTED, "agents/clinic.toml": f'greeting = "Hi {{caller}}."\n{AGENT}'},
            ("my.toml: warning: Agent clinic: greeting: {caller} is read out as it stands",), status=0),
    in_agent("a time zone that is none", f'time_zone = "Berlin"\n{AGENT}',
             "time_zone: 'Berlin' is no time zone; did you mean Europe/Berlin?"),
    in_agent("a voice that is not there", f'voice = "en-uss"\n{AGENT}',
             "there is no voice 'en-uss'", "such as en-us", 'engines.tts = "auto"', status=0),
    in_agent("a language that is none", f'language = "English"\n{AGENT}',
             'language: cannot be "English"; allowed: a language as BCP 47 has it, such as "en"'),
    in_agent("languages without the one in which it begins", f'languages = ["de", "fr"]\n{AGENT}',
             "languages: en, in which it begins (language), is not among de, fr; add it"),
    in_agent("a language that is not heard", f'language = "de"\n{AGENT}',
             "'de' (language); whisper.model Systran/faster-whisper-tiny.en hears English alone: set it to "
             "Systran/faster-whisper-base", status=0),
]  # fmt: skip

MACHINES = [
    in_config("a voice that no engine has", '[espeak]\nvoice = "en-uss"\n',
              "espeak.voice is 'en-uss', and espeak-ng has none of that name: choose another, such as en-us", status=0),
    in_config("times that contradict each other", "[endpoint]\nsure_ms = 1400\n",
              "endpoint.sure_ms: cannot be 1400, more than endpoint.longest_ms, which is 1350"),
    in_config("a key that is not set", TENANT.format("a", "VOICEPIPE_TEST_UNSET"),
              "tenants[0].key_env: the environment variable VOICEPIPE_TEST_UNSET is not set here", status=0),
    in_config("a key that is empty", TENANT.format("a", "VOICEPIPE_TEST_EMPTY"),
              "tenants[0].key_env: the environment variable VOICEPIPE_TEST_EMPTY is not set here, or empty", status=0),
    Mistake("the same, at the start", {"my.toml": TENANT.format("a", "VOICEPIPE_TEST_EMPTY")},
            ("my.toml: tenants[0].key_env: the environment variable VOICEPIPE_TEST_EMPTY is not set here",),
            argv=(*POP, "my.toml")),
    in_config("a file with a key that is not there", '[[tenants]]\nname = "a"\nkey_file = "a.key"\n',
              "tenants[0].key_file: there is no ", "a.key; a PoP does not start without it", status=0),
    Mistake("a file with a key that is empty", {"my.toml": '[http]\nmetrics_key_file = "m.key"\n', "m.key": ""},
            ("my.toml: http.metrics_key_file: ", "m.key is empty: write a key into it"), argv=(*POP, "my.toml")),
    in_config("a key in two places", '[[tenants]]\nname = "a"\nkey_env = "A"\nkey_file = "a.key"\n',
              "tenants[0].key_file: key_env names a variable already; leave one of the two out"),
    in_config("an authority's certificate that is not there", '[tls]\nca = "ca.pem"\n', "tls.ca: there is no "),
    Mistake("an authority's certificate that is none", {"my.toml": '[tls]\nca = "ca.pem"\n', "ca.pem": "sesame"},
            ("my.toml: ", "tls.ca: ", "ca.pem holds no certificate; give the authority's own, in PEM"), status=0),
    in_config("the key itself", TENANT.format("a", "sk-12/34"),
              "tenants[0].key_env: holds something else than a name; allowed: the name of an environment variable"),
    in_config("a key without a name", TENANT.format("a", ""),
              "tenants[0].key_env: is missing; name the variable that holds it, or its file as key_file"),
    in_config("two tenants with one key", TENANT.format("a", "A_KEY") + TENANT.format("b", "A_KEY"),
              "tenants[1].key_env: A_KEY is the key of a already; name another variable"),
    Mistake("a relay's secret that is not set",
            {"my.toml": '[webrtc]\nturn_urls = ["turn:a.example"]\nturn_secret_env = "VOICEPIPE_TEST_UNSET"\n'},
            ("my.toml: webrtc.turn_secret_env: the environment variable VOICEPIPE_TEST_UNSET is not set here",),
            argv=(*POP, "my.toml")),
    in_config("open to all", '[http]\nhost = "0.0.0.0"\n',
              "http.host = '0.0.0.0' lets other machines call", "add a [[tenants]] table", status=0),
    in_config("a host with its port", '[http]\nhost = "localhost:8080"\n',
              "http.host: 'localhost:8080' is no host name or address; give one alone", "the port as port"),
    in_config("a port out of range", "[sip]\nport = 506000\n", "sip.port: cannot be 506000", "at most 65535"),
    Mistake("a port that is taken", {"my.toml": f"[sip]\nport = {TAKEN}\n"},
            ("my.toml: UDP port ", "on 127.0.0.1 cannot be had", "choose another sip.port, such as --sip-port"),
            argv=(*POP, "my.toml")),
    in_config("ports from last to first", "[sip]\nfirst_port = 20100\nlast_port = 20000\n",
              "sip: first_port and last_port go together, the lower one first"),
    in_config("a server without its scheme", '[openai]\nbase_url = "localhost:8000/v1"\n',
              "openai.base_url: 'localhost:8000/v1' is no address; give one such as http://127.0.0.1:8000/v1"),
    in_config("steps further apart than chunks", "[nemotron]\nchunk_ms = 80\ngather_ms = 100\n",
              "nemotron.gather_ms: cannot be 100; at most 40, half of chunk_ms (80)"),
    in_config("chunks for which the English model was not trained", "[nemotron]\nchunk_ms = 320\n",
              "nemotron.chunk_ms: cannot be 320 with nvidia/nemotron-speech-streaming-en-0.6b; give 160 or 560"),
    in_config("languages that the English model is to find", "[nemotron]\ndetect_language = true\n",
              "nemotron.detect_language: nvidia/nemotron-speech-streaming-en-0.6b hears English alone; set model to"),
    in_config("an engine that there is not", '[engines]\nllm = "ollama"\n',
              'engines.llm: cannot be "ollama"; allowed: "auto"'),
    in_config("a GPU by another name", '[whisper]\ndevice = "gpu"\n',
              'whisper.device: cannot be "gpu"', 'such as "cuda:1"'),
    in_config("a place beyond the poles", "[fleet]\nplace = [501.0, 8.7]\n",
              "fleet.place: [501.0, 8.7] is none; give latitude and longitude, such as [50.1, 8.7]"),
]  # fmt: skip

MISTAKES = [*WRITING, *FILES, *AGENTS, *MACHINES]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, on a machine without a language model."""

    async def nobody() -> None:
        return None

    def run(command: Coroutine[Any, Any, int], *_: object) -> int:
        return asyncio.run(asyncio.wait_for(command, 20))  # A mistake that nobody sees would run for ever.

    monkeypatch.setattr(local_servers, "look", nobody)
    monkeypatch.setattr(runtime, "run", run)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VOICEPIPE_TEST_UNSET", raising=False)
    monkeypatch.setenv("VOICEPIPE_TEST_EMPTY", " ")
    for name in "AB":
        monkeypatch.setenv(f"{name}_KEY", f"key of {name}")
    return tmp_path


@pytest.fixture
def taken() -> Iterator[str]:
    """A port that somebody else has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as phone:
        phone.bind(("127.0.0.1", 0))
        yield str(phone.getsockname()[1])


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name.replace(" ", "_"))
def test_a_mistake_is_told(mistake: Mistake, here: Path, taken: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in mistake.files.items():
        (here / name).parent.mkdir(exist_ok=True)
        written = content if isinstance(content, bytes) else content.replace(TAKEN, taken).encode()
        (here / name).write_bytes(written)
    status = cli.main(mistake.argv or ("check", next(iter(mistake.files))))
    out, err = capsys.readouterr()
    said = out + err
    lines = [line for line in said.splitlines() if all(part in line for part in mistake.told)]
    assert lines, f"no line has all of {mistake.told} in:\n{said}"
    assert status == mistake.status
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "webhook",
    [
        'webhook = { url = "https://a.example", headers = "Bearer s3cret" }',
        'webhook = { url = "https://a.example", headers = { authorization = ["s3cret"] } }',
        'webhook = { url = "https://a.example", headers = { authorization = { bearer = "s3cret" } } }',
        'webhook = [{ headers = { a = "s3cret" } }]',
        'webhook = { url = { headers = "s3cret" } }',
    ],
)
def test_what_may_be_a_secret_is_not_shown(webhook: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "clinic.toml").write_text(f"{AGENT}{TOOL}{webhook}\n")
    assert cli.main(["check", "clinic.toml"]) == 2
    said = capsys.readouterr().out
    assert said.startswith("clinic.toml: tools[0].webhook") and "allowed: " in said
    assert "s3cret" not in said


def test_a_tenant_may_have_two_keys(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever changes a key has both for a while."""
    (here / "my.toml").write_text(TENANT.format("a", "A_KEY") + TENANT.format("a", "B_KEY"))
    assert cli.main(["check", "my.toml"]) == 0
    assert capsys.readouterr().out == "my.toml: ok (configuration)\n"


def test_what_the_command_line_says_is_no_mistake_of_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "my.toml").write_text(SCRIPTED)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.main(["pop", "--config", "my.toml", "--port", str(port)]) == 2
    assert capsys.readouterr().err.startswith(f"voicepipe: --port: port {port} on 127.0.0.1 is taken by another")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as phone:
        phone.bind(("127.0.0.1", 0))
        assert cli.main([*POP, "my.toml", "--sip-port", str(phone.getsockname()[1])]) == 2
    assert capsys.readouterr().err.startswith("voicepipe: --sip-port: UDP port ")


def test_agents_whom_an_english_voice_would_read_are_named(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    for name, language in (("hall", "de"), ("desk", "en-GB")):
        (here / f"{name}.toml").write_text(f'name = "{name}"\nlanguage = "{language}"\n')
    assert cli.main(["check", "hall.toml", "desk.toml"]) == 0
    said = capsys.readouterr().out
    assert "hall.toml: note: Agent hall is spoken to in 'de' by an English voice: espeak-ng is not installed" in said
    assert "voicepipe-pop[espeak]" in said and "Agent desk is spoken to" not in said


def test_agents_who_press_no_keys_by_twilio_are_named(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWILIO", "token")
    (here / "agents").mkdir()
    for name in ("orders", "desk"):
        (here / "agents" / f"{name}.toml").write_text(
            f'name = "{name}"\nsend_keys = {"true" if name == "orders" else "false"}\n'
        )
    pop = '[pop]\nagents = "agents"\ndefault_agent = "desk"\n'
    (here / "my.toml").write_text(pop + '[twilio]\nauth_token_env = "TWILIO"\n')
    (here / "sip.toml").write_text(pop)
    assert cli.main(["check", "my.toml", "sip.toml"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "send_keys" in line]
    assert len(said) == 1 and said[0].startswith(
        "my.toml: note: Agent orders presses no keys (send_keys) in calls by Twilio"
    )

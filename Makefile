# `make run` starts everything, `make test` proves it. Everything else is built from these.

PYTHON ?= python3
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)

# Without a secret, and without a word about DEBUG, this is somebody's laptop: guests may talk, a local account is made.
ifeq ($(SECRET_KEY)$(shell grep -sE '^(SECRET_KEY|DEBUG)=.' .env),)
export DEBUG ?= 1
endif

# Speech recordings for benchmarks and extra tests, when they lie beside the checkout.
ifneq ($(wildcard ../shared/audio/manifest.tsv),)
export SPEECH_DIR ?= $(abspath ../shared/audio)
endif

# Most tests wait for speech that takes its time, so there are more workers than cores. `make test PARALLEL=` has one.
PARALLEL ?= -n $(shell echo $$(( $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 1 ))) --dist loadscope --no-loadscope-reorder

.PHONY: run install models key test lint format bench bench-webrtc soak lock screenshot clean

run: install
	[ "$(DEBUG)" = 1 ] || $(BIN)/python manage.py collectstatic --noinput --verbosity 0  # what pages fetch in production
	$(BIN)/python manage.py fetch_models || true  # without models the server starts and says what is missing
	$(BIN)/python manage.py bootstrap  # tables; on first start, an account, a key and a login
	exec $(BIN)/python manage.py serve

install: .venv/runtime.stamp

models: install
	$(BIN)/python manage.py fetch_models

# An API key, alone on standard output.
key: install
	@$(BIN)/python manage.py createkey --account "$(or $(ACCOUNT),$(error Say whose: make key ACCOUNT=NAME))"

test: .venv/tests.stamp models .venv/system.stamp lint
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

lint: .venv/tests.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/tests.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/tests.stamp models
	$(BIN)/python -m tests.bench $(ARGS)
	$(BIN)/python -m tests.bench.retrieval $(ARGS)
	$(BIN)/python -m tests.bench.generation $(ARGS)
	$(BIN)/python -m tests.bench.metering
	$(BIN)/python -m tests.bench.webrtc
	$(BIN)/python -m tests.bench.tasks
	$(BIN)/python -m tests.bench.webhooks

# What the tests try some hundreds of times, tried many thousand times.
soak: .venv/tests.stamp
	SDP_MUTATIONS=20000 $(BIN)/python -m pytest -n 0 -s tests/realtime/webrtc/test_offers.py -k mutation $(ARGS)

# Calls per core beside FastRTC, which brings a gigabyte with it into an environment of its own.
bench-webrtc: .venv/tests.stamp models var/fastrtc/stamp
	FASTRTC_PYTHON=var/fastrtc/bin/python $(BIN)/python -m tests.bench.webrtc $(ARGS)

# The pictures in the README, made by the browser tests.
screenshot: .venv/tests.stamp models .venv/system.stamp
	README_SCREENSHOT=docs/screenshot.png $(BIN)/python -m pytest tests/browser -k screenshot

lock: .venv/tests.stamp
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		requirements.in -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		tests/requirements.in -o tests/requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		tests/bench/fastrtc-requirements.in -o tests/bench/fastrtc-requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		requirements-celery.in -o requirements-celery.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		requirements-s3.in -o requirements-s3.txt

clean:
	rm -rf .venv staticfiles .pytest_cache .ruff_cache .mypy_cache .hypothesis

.venv/runtime.stamp: requirements.txt
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	touch $@

.venv/tests.stamp: .venv/runtime.stamp tests/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tests/requirements.txt
	touch $@

var/fastrtc/stamp: tests/bench/fastrtc-requirements.txt
	[ -x var/fastrtc/bin/python ] || $(PYTHON) -m venv var/fastrtc
	var/fastrtc/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

# What the tests need of the system; on machines without apt, install these by hand.
PROGRAMS := chromium node npm redis-server turnserver pg_ctlcluster
.venv/system.stamp: .venv/runtime.stamp
	which $(PROGRAMS) >/dev/null || \
		{ $(SUDO) apt-get update -qq && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends chromium $$(which npm >/dev/null || echo nodejs npm) redis-server \
			coturn postgresql fonts-dejavu-core >/dev/null; }
	touch $@

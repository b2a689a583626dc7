# `make run` and `make test` work on a fresh machine with Python 3.11 and nothing else: each creates .venv and installs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA := ../shared/data
FIRST := studies/first
INITDB := $(firstword $(shell command -v initdb) $(wildcard /usr/lib/postgresql/*/bin/initdb))
CHROMIUM := $(firstword $(shell command -v chromium chromium-browser))
ALONE := ray or alone$(if $(INITDB), or postgres)$(if $(CHROMIUM), or browser)
TOGETHER := not ray and not alone and not postgres and not browser and $(if $(wildcard $(DATA)),not (data and slow),not data)
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -q
BOTH := -n 2 --dist worksteal # tests of one file mostly stay in one process, which makes what they share once

# The tests start hundreds of processes: compiled modules are kept even where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test test-long check format clean

run: $(VENV)/.stamp-run
	@if [ -f $(FIRST)/run.json ]; then $(BIN)/formwright resume $(FIRST); \
	else $(BIN)/formwright search flexibert-nano --task mini-glue/sst2 --trials 30 --workers 2 --out $(FIRST); fi

# Tests that need a cluster, a server or a browser run alone, in one process: they measure time limits of their own.
test: $(VENV)/.stamp-dev
	@$(if $(wildcard $(DATA)),,echo "no $(DATA): the tests of published data are left out")
	@$(if $(INITDB),,echo "no PostgreSQL: its tests are left out")
	@$(if $(CHROMIUM),,echo "no Chromium: the tests of the page are left out")
	$(PYTEST) $(BOTH) -m "$(TOGETHER) and not long"
	$(PYTEST) -m "($(ALONE)) and not long"

# What takes longest: whole commands that are killed and resumed, Ray clusters, further samplers.
test-long: $(VENV)/.stamp-dev
	$(PYTEST) $(BOTH) -m "$(TOGETHER) and long"
	$(PYTEST) -m "($(ALONE)) and long"

check: $(VENV)/.stamp-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) $(BOTH)

format: $(VENV)/.stamp-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# pip is the last thing that comes into a new environment: where it is missing, making one was cut short.
$(BIN)/pip:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and \"formwright needs Python 3.11 or newer; try: make PYTHON=python3.11\")"
	$(PYTHON) -m venv $(VENV)

# A stamp is younger than the two files that say what to install, or the installation is done again.
$(VENV)/.stamp-run: pyproject.toml constraints.txt | $(BIN)/pip
	$(PIP) --editable .
	@touch $@

$(VENV)/.stamp-dev: pyproject.toml constraints.txt | $(BIN)/pip
	$(PIP) --editable ".[dev]"
	@touch $@ $(VENV)/.stamp-run

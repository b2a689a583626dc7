# `make run` and `make test` work on a fresh machine with Python 3.11 and nothing else: each creates .venv and installs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA := ../shared/data
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -q -n 2

.PHONY: run test check format clean

run: $(VENV)/.stamp-run
	$(BIN)/formwright list spaces
	$(BIN)/formwright show flexibert --sample 1 --seed 7

test: $(VENV)/.stamp-dev
	$(PYTEST) -m "not data"
	@if [ -d $(DATA) ]; then $(PYTEST) -m data; else echo "no $(DATA): the tests of published data are left out"; fi

check: $(VENV)/.stamp-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST)

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

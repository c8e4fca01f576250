# make demo [SECONDS=30]   the whole pipeline on this machine: embedded broker, worker, simulated devices
# make test                everything that .ci/run runs: lint, types, tests (PYTEST="-k wire" narrows the tests)
# make lint | format | clean
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST ?=
SECONDS ?=

.PHONY: demo test lint format clean

demo: $(VENV)/.demo
	@$(BIN)/ldpstream demo $(if $(SECONDS),--seconds $(SECONDS))

test: lint
	$(BIN)/python -m pytest $(PYTEST)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis docker/kafka/jars

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ldpstream needs Python 3.11 or newer; name one with make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }

# The extras are installed against one file of exact versions, so that every machine runs the same code.
$(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing ldpstream and what it needs into $(VENV): about a minute"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	@touch $@

# make demo [SECONDS=30]   the whole pipeline on this machine: embedded broker, worker, simulated devices
# make test                everything that .ci/run runs: lint, types, tests (PYTEST="-k wire" narrows the tests,
#                          JOBS=1 runs them one after the other)
# make up | down           in Docker: Kafka, two workers, devices, Prometheus, Grafana (docker/compose.yaml)
# make lint | format | clean
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST ?=
JOBS ?= 2
SECONDS ?=

.PHONY: demo test up down lint format clean

demo: $(VENV)/.demo
	@$(BIN)/ldpstream demo $(if $(SECONDS),--seconds $(SECONDS))

test: lint
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal $(PYTEST)

up: docker/secrets/read-token docker/secrets/grafana-password
	docker compose -f docker/compose.yaml up --build --wait
	@echo "page http://localhost:6066, its token in docker/secrets/read-token; Grafana http://localhost:3000 (admin)"

down:
	docker compose -f docker/compose.yaml down

# Containers read them under another user: the folder keeps others out, not the files' own mode.
docker/secrets/%:
	@mkdir -p -m 700 docker/secrets
	@od -An -N32 -tx1 /dev/urandom | tr -d ' \n' > $@

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
	@echo "installing ldpstream and what it needs into $(VENV): a minute or two"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	@touch $@

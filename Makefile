# make demo [SECONDS=30]   the whole pipeline on this machine: embedded broker, worker, simulated devices
# make test                everything that .ci/run runs: lint, types, tests (PYTEST="-k wire" narrows the tests,
#                          JOBS=1 runs them one after the other)
# make check               in a minute or two: lint, types, and the tests that start no process (PYTEST="-k wire")
# make soak                before a release: many seeds where the tests take a few
# make up | down           in Docker: Kafka, two workers, devices, Prometheus, Grafana (docker/compose.yaml)
# make containers          the same in an engine of its own, on Debian 12 as root: counted exactly through a
#                          killed worker and another image of the workers, scraped, stopped in time,
#                          nothing left behind
# make chart               renders docker/helm for the tests, and checks it against Kubernetes' schemas
# make lint | format | clean
# make constraints         exact versions and hashes of everything that is installed (CONTRIBUTING.md)
# make images              at a release: the digests of the images in docker/, from their registries
# make docs                the documentation as a site with a search, its links checked: build/site,
#                          a folder a version (SITE=FOLDER keeps those of other checkouts beside it)
# make release TAG=v0.1.0  checks tag, version and CHANGELOG.md, builds twice and compares: dist/
#                          (URL=https://... of the repository, where its packages are to lead, and
#                          EMAIL= of its authors)
# make sbom                a CycloneDX list of what the image installs, in build/sbom.json
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TOOLS := $(VENV)/tools/bin
PYTEST ?=
JOBS ?=
SECONDS ?=
# A process takes the next file of tests as soon as it has time, in the order of tests/order.py.
FILES := --dist loadfile --no-loadscope-reorder

# Where it is set, every process of tests compiles all of them.
unexport PYTHONDONTWRITEBYTECODE
# More threads than cores wait for each other in busy loops: four times the time of a core.
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test all-tests check check-tests soak up down readable containers chart lint style types format clean constraints sbom docs images release

demo: $(VENV)/.demo
	@$(BIN)/ldpstream demo $(if $(SECONDS),--seconds $(SECONDS))

# Types next to the tests: either alone leaves a core idle for a while.
test: style
	@$(MAKE) --no-print-directory --jobs 2 all-tests types

# More processes than most machines have cores: tests of brokers and of the page mostly wait.
all-tests: $(VENV)/.dev $(VENV)/.compiled $(TOOLS)/uv
	$(BIN)/python -m pytest --numprocesses $(or $(JOBS),6) $(FILES) $(PYTEST)

# Otherwise all processes of the first run would compile all tests.
$(VENV)/.compiled: | $(VENV)/.dev
	-@$(BIN)/python -m pytest --collect-only -qq > /dev/null
	@touch $@

check: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-tests lint

check-tests: $(VENV)/.dev
	LDPSTREAM_CHECK=1 $(BIN)/python -m pytest -q --numprocesses $(or $(JOBS),2) $(FILES) \
	  tests/exact tests/property tests/conformance tests/stream tests/house/test_layering.py $(PYTEST)

soak: $(VENV)/.dev
	LDPSTREAM_SOAK=1 $(BIN)/python -m pytest -m soak --numprocesses $(or $(JOBS),2) --dist worksteal $(PYTEST)
	$(BIN)/python -m tests.stream.mutants

# Containers read what is here under other users, whatever mode the umask of a checkout has left it.
readable: docker/secrets/read-token docker/secrets/grafana-password
	@chmod 644 $^ docker/ldpstream.toml docker/kafka/compose.properties
	@chmod -R u=rwX,go=rX docker/grafana docker/prometheus

up: readable
	docker compose -f docker/compose.yaml up --build --wait
	@echo "page http://localhost:6066, its token in docker/secrets/read-token; Grafana http://localhost:3000 (admin)"

down:
	docker compose -f docker/compose.yaml down

# Says why and succeeds where it cannot run: docker/containers.sh.
containers:
	@docker/containers.sh test

# Needs helm, or Go to install it.
chart:
	@docker/helm/render.sh

# The folder keeps others out, not the files' own mode: a container gets a file, not the folder.
docker/secrets/%:
	@mkdir -p docker/secrets && chmod 700 docker/secrets
	@od -An -N32 -tx1 /dev/urandom | tr -d ' \n' > $@

lint: style types

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis docker/kafka/jars

# pip comes last: an environment without it was left half made, and is made again.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ldpstream needs Python 3.11 or newer; name one with make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) \
	  || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }

# Every package by exact version and hash, so that every machine runs the same code; then ldpstream
# itself, which has none, by the build backend that is among them.
PIP := $(BIN)/python -m pip --disable-pip-version-check
LOCKED_demo := constraints-demo.txt
LOCKED_dev := constraints.txt
$(VENV)/.%: pyproject.toml constraints.txt constraints-demo.txt | $(BIN)/pip
	@echo "installing ldpstream and what it needs into $(VENV): a minute or two"
	@# A pipe's exit code is that of its end.
	@{ $(PIP) install --require-hashes --only-binary :all: --progress-bar off --requirement $(LOCKED_$*) \
	  || touch $@.failed; } \
	  | sed -nu -e 's/^Collecting \([^ ]*\).*/  \1/p' -e 's/^Installing collected packages.*/  unpacking all of them/p'
	@! rm $@.failed 2> /dev/null
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# For what pyproject.toml allows on Python 3.11 and later, of every platform. UPGRADE=--upgrade takes
# newer versions than those that the files have.
UPGRADE ?=
LOCK = $(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $(UPGRADE)
constraints: $(TOOLS)/uv
	$(LOCK) pyproject.toml --extra dev --output-file constraints.txt
	$(LOCK) pyproject.toml --group build --extra demo --constraint constraints.txt --output-file constraints-demo.txt
	$(LOCK) pyproject.toml --group build --constraint constraints.txt --output-file constraints-base.txt
	$(LOCK) --group tools --output-file constraints-tools.txt

sbom: $(TOOLS)/uv
	@mkdir -p build
	$(TOOLS)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file build/sbom.json constraints-base.txt

$(TOOLS)/uv: constraints-tools.txt | $(BIN)/pip
	@$(BIN)/python -m venv $(VENV)/tools
	@$(TOOLS)/python -m pip --quiet --disable-pip-version-check install --require-hashes --only-binary :all: --requirement $<
	@touch $@

SITE ?= build/site
docs: $(TOOLS)/uv $(VENV)/.dev
	@$(BIN)/python .ci/docs.py $(TOOLS) $(SITE)

release: $(VENV)/.dev
	@$(BIN)/python .ci/release.py $(TAG) $(URL) $(if $(URL),$(EMAIL))

images:
	@$(PYTHON) docker/pin.py

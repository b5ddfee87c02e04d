# Everything a user or developer does, from a clone: `make demo`, `make test`. Nothing is written outside the tree.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
# Programs are started as modules, since the first line of a script cannot hold every folder's name.
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-run
STAMP := $(VENV)/.installed

export LANIKAI_CACHE_DIR := $(CURDIR)/.cache/lanikai
export MPLCONFIGDIR := $(LANIKAI_CACHE_DIR)/matplotlib
export XDG_CACHE_HOME := $(LANIKAI_CACHE_DIR)/xdg
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test test-full mutate coverage formal lint format docs docs-site dist lock clean

help: ## Show this.
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(STAMP) ## Make .venv and install the pinned versions in it, for tests and FPGA tools too.

demo: $(RUN_STAMP) ## Run the main job: share-senders in its quick size.
	$(BIN)/python -m lanikai.sim run share-senders

# The slowest test takes two minutes on a machine at rest.
test: lint ## Run the checks and the tests; one that takes over 15 minutes has failed.
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not full" --timeout 900

test-full: lint ## Run every test, those that take long too.
	$(BIN)/python -m pytest -n 2 --dist loadgroup

SEED ?= 1
COUNT ?= 20

mutate: setup ## Change the RTL, COUNT times a file, and see whether tests notice; FILES="hdl/link.py ..." or all.
	PYTHONPATH=tests $(BIN)/python -m support.mutation --seed $(SEED) --count $(COUNT) $(addprefix --test ,$(TEST)) $(FILES)

coverage: setup ## Count which lines of the RTL run and which bits change in Verilator; TESTS="..." or a set of them.
	PYTHONPATH=tests $(BIN)/python -m support.coverage $(TESTS)

formal: setup ## Run every proof, and write the table of docs/verification.md.
	@mkdir -p .cache && rm -f .cache/proofs.jsonl
	LANIKAI_PROOFS=$(CURDIR)/.cache/proofs.jsonl $(BIN)/python -m pytest -n 2 tests/formal
	PYTHONPATH=tests $(BIN)/python -m support.formal.table .cache/proofs.jsonl docs/verification.json
	$(BIN)/python docs/generate.py

lint: setup ## Run ruff and mypy.
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy -p lanikai.constraints -p lanikai.hdl -p lanikai.firmware -p lanikai.sim -p lanikai.api

format: setup ## Put every file into the one format.
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

docs: setup ## Write the pages of docs/ that come from the code.
	$(BIN)/python docs/generate.py

docs-site: setup ## Write the documentation site into site/: pages of docs/, the API from docstrings.
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "open site/index.html"

dist: setup ## Write wheel and source archive into dist/, the version from the tag; a commit always gives the same wheel.
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 315532800) $(BIN)/python -m build --outdir dist

lock: ## Pin the newest versions that pyproject.toml allows (needs uv).
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-emit-index-url --no-header \
		--all-extras pyproject.toml --output-file requirements.lock

clean: ## Remove what was made: environment, build cache, results.
	rm -rf $(VENV) .cache results build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Made anew only when what they are made from has changed. A stamp is written last: a set-up that was interrupted is
# done again. A run needs a third of what tests, proofs and FPGA tools do.
$(RUN_STAMP): pyproject.toml requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing; install it with: sudo apt-get install python3 python3-venv" >&2; exit 3; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $$($(PYTHON) --version) is too old: 3.11 or newer is needed; name one with: make PYTHON=python3.11" >&2; exit 3; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: venv is missing; install it with: sudo apt-get install python3-venv" >&2; exit 3; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet -c requirements.lock -e '.[report]'
	@touch $@

$(STAMP): $(RUN_STAMP)
	$(BIN)/python -m pip install --quiet -c requirements.lock -e '.[test,formal,fpga,export,cluster,report,waves,site]'
	@touch $@

# Every target sets up .venv from requirements.lock when it is missing or stale; all it needs is Python 3.11 or newer.
#   make demo                     PYTHON=python3.12 make demo       another interpreter
#   make test WORKERS=8           more test processes               make lock UPGRADE=1   newest versions

PYTHON  ?= python3
WORKERS ?= 2
VENV    := .venv
BIN     := $(VENV)/bin
RUN     := $(BIN)/python -m
PIP     := $(RUN) pip --disable-pip-version-check -qq
EXTRAS  := --extra dev --extra bench

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint bench docs lock clean moved
.DELETE_ON_ERROR:

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

setup: $(VENV)/.installed ## create .venv and install everything, pinned and checked by hash

demo: setup ## run the whole story on bundled data and write a report to runs/demo
	@$(BIN)/weightscape demo --out runs/demo

test: lint ## lint, then every test but the slow ones
	@$(RUN) pytest -n $(WORKERS) --dist loadfile -m "not slow"

test-all: lint ## lint, then every test
	@$(RUN) pytest -n $(WORKERS)

lint: setup ## check style, format, types and the order of imports
	@$(RUN) ruff check --quiet .
	@$(RUN) ruff format --check --quiet . > /dev/null || { echo "Some files are not formatted. Run: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports --no-cache --no-logo > $(VENV)/.imports || { cat $(VENV)/.imports; exit 1; }

bench: setup ## run every script in benchmarks/
	@for script in $(sort $(wildcard benchmarks/*.py)); do echo "$$script"; $(BIN)/python $$script || exit 1; done

docs: setup ## run the code that the documentation shows
	@$(RUN) pytest tests/docs

# The lock's own uv rewrites it; where .venv is missing the newest one does. Pins stay unless UPGRADE=1.
lock: ## write requirements.lock anew from pyproject.toml
	@test -x $(BIN)/uv || { $(PYTHON) -m venv $(VENV) && $(PIP) install uv; }
	@$(BIN)/uv pip compile pyproject.toml $(EXTRAS) $(if $(UPGRADE),--upgrade) --quiet --output-file requirements.lock \
	    --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" > /dev/null

clean: ## remove .venv and what the tools leave behind; runs/ stays
	@rm -rf $(VENV) .pytest_cache .ruff_cache build dist
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Two steps, so that an edit of pyproject.toml does not reinstall the packages. Only wheels, without build isolation:
# nothing reaches the environment that the lock does not name.
$(VENV)/.locked: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || { \
	    echo "weightscape needs Python 3.11 or newer, and '$(PYTHON)' is not. Run: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Setting up $(VENV): installing the pinned packages, about a minute ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --only-binary :all: --require-hashes -r requirements.lock
	@echo "$(CURDIR)" > $@

$(VENV)/.installed: $(VENV)/.locked pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(RUN) pip check > /dev/null || { $(RUN) pip check; echo "pyproject.toml asks for more than the lock holds. Run: make lock"; exit 1; }
	@touch $@

# An environment holds absolute paths, so one that was copied or moved is made anew.
ifneq ($(shell cat $(VENV)/.locked 2> /dev/null),$(CURDIR))
$(VENV)/.locked: moved
endif

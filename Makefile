# `make demo` and `make test` need git, make, python3 (3.11 or newer) with venv, and nothing before.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A stamp that is newer than everything that would make it stale.
INSTALLED := $(VENV)/.installed

PYTEST := $(BIN)/python -m pytest
# So many tests at once. `make test WORKERS=1` runs one after the other.
WORKERS ?= $(shell nproc 2>/dev/null || echo 2)
AT_ONCE := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# `make demo HEADED=1` shows the browser.
HEADED ?=
# `make storm SEED=7` has the same things go wrong at the same moments.
SEED ?=

.PHONY: help demo test check mutants bench soak storm format lock clean browser system

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: browser ## Run two jobs on the sample shop through a farm of their own
	@$(BIN)/python -m examples.demo $(if $(HEADED),--headed)

test: browser system ## Install what the tests need, and run all of them
	@$(PYTEST) $(AT_ONCE) -m "not alone"
	@$(PYTEST) -m alone

check: $(INSTALLED) ## Format, lint, types, imports, and the quick tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(PYTEST) -q $(AT_ONCE) -m "not browser and not slow and not images"

mutants: $(INSTALLED) ## Turn each comparison of the rules round: a test must fail for each
	@$(BIN)/python -m tests.mutation

bench: browser ## Measure the farm against bare Playwright, its pool, fleet, live view, overlay and guard; writes build/*bench.json
	@$(BIN)/python -m tests.benchmarks
	@$(BIN)/python -m tests.benchmarks.ready
	@$(BIN)/python -m tests.benchmarks.pool
	@$(BIN)/python -m tests.benchmarks.fleet
	@$(BIN)/python -m tests.benchmarks.overlay
	@$(BIN)/python -m tests.benchmarks.live
	@$(BIN)/python -m tests.benchmarks.guard

soak: browser ## Run 500 jobs on one agent with 20 kills in between; what must be flat is judged
	@$(BIN)/python -m tests.soak

storm: $(INSTALLED) ## Run 2,000 jobs on one coordinator and on three while everything is killed, stopped and cut off; 1,000 rounds of a crowd over Redis
	@$(BIN)/python -m tests.e2e.storm $(if $(SEED),--seed $(SEED))
	@$(BIN)/python -m tests.e2e.storm --coordinators 3 $(if $(SEED),--seed $(SEED))
	@ROUNDS=1000 $(PYTEST) -q tests/stores/test_redis_crowd.py

format: $(INSTALLED) ## Format the code and sort its imports
	@$(BIN)/ruff check --fix-only --quiet --select I .
	@$(BIN)/ruff format .

lock: ## Write requirements.lock anew from pyproject.toml
	@scripts/lock.sh

clean: ## Remove everything that was made, the virtual environment too
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    .import_linter_cache *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml requirements.lock scripts/venv.sh
	@scripts/venv.sh "$(PYTHON)" "$(VENV)"
	@touch $@

# Looked at every time: a browser can be gone while the virtual environment is still there.
browser: $(INSTALLED)
	@scripts/browser.sh "$(BIN)"

# After the browser, because both may use apt.
system: browser
	@scripts/system.sh

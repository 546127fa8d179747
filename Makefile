# The two commands a newcomer needs are `make demo` and `make test`; both set the machine up first (scripts/setup).
SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN := .venv/bin
UV := scripts/uv
# Narrow any test target: make test PYTEST_ARGS="tests/unit/core -x"
PYTEST_ARGS ?=
# Two workers; all Docker tests share one group, the other worker goes on with the pure tests.
PARALLEL ?= -n 2 --dist loadgroup
DEMO_OUT ?= demo-site

.PHONY: help demo test test-fast acceptance lint docs bench lock clean setup-python setup-sandbox setup-all

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: setup-sandbox ## run, grade, analyse, attest, verify and publish a bundled experiment
	rm -rf $(DEMO_OUT)
	$(BIN)/labaudit demo --out $(DEMO_OUT)

test: setup-all lint ## lint and every test that is not a long one (under 6 minutes)
	$(BIN)/pytest $(PARALLEL) -m "not acceptance" $(PYTEST_ARGS)

test-fast: setup-python ## unit and property tests only
	$(BIN)/pytest $(PARALLEL) -m "not acceptance and not docker and not bubblewrap and not browser and not node" \
	    $(or $(PYTEST_ARGS),tests/unit tests/property)

acceptance: setup-all ## the long checks: kill loops, attack lists, thousands of flips (at most 25 minutes)
	@scripts/setup acp
	LABAUDIT_HYPOTHESIS=acceptance $(BIN)/pytest $(PARALLEL) -m acceptance --timeout 1200 $(PYTEST_ARGS)

lint: setup-python ## ruff, mypy --strict, import-linter, mkdocs --strict
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/build_docs.py --check

docs: setup-python ## the pages that are written from the code, then the documentation site in site/
	$(BIN)/python scripts/interfaces.py
	$(BIN)/python scripts/cli_manual.py
	$(BIN)/python scripts/overview_pages.py
	$(BIN)/python scripts/build_docs.py

bench: setup-all ## every benchmark, as ratios measured in one run
	$(BIN)/python benchmarks/run_all.py $(BENCH_ARGS)

lock: ## resolve pyproject.toml again into requirements.lock
	$(UV) pip compile pyproject.toml --all-extras --generate-hashes --no-emit-index-url --python-version 3.11 \
	    --custom-compile-command "make lock" --quiet -o requirements.lock

clean: ## remove what make and the tests wrote, but no runs in .lab
	rm -rf .venv .cache build dist site $(DEMO_OUT) .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup-python:
	@scripts/setup python

setup-sandbox:
	@scripts/setup python sandbox engine

setup-all:
	@scripts/setup python sandbox engine browser node

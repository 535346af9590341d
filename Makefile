# Every target sets up .venv itself when it is missing or stale; `make PYTHON=python3.12 setup` chooses an interpreter.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup browser demo test check lint bench docs clean environment

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARGS ?=

# The first interpreter that runs (a version manager's stand-in may not), is new enough and can make environments.
SUITABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c '$(SUITABLE)' 2>/dev/null && echo $$python && break; done)

# An environment that was copied from elsewhere would test the sources there; one without its interpreter tests none.
USABLE := $(shell grep -qsF '$(CURDIR)/$(VENV)' $(VENV)/pyvenv.cfg && $(BIN)/python -c '' 2>/dev/null && echo yes)

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## install everything into .venv
	@echo "$(VENV) is ready."

# Only where nobody has to be asked for it: elsewhere the tests that need it are skipped, and say so.
browser: ## install chromium, in which the tests try the live page, where that takes nothing but apt-get
	@command -v chromium chromium-browser google-chrome > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
		&& echo "Installing chromium." && { DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium > /dev/null 2>&1 \
		|| { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium; } > /dev/null 2>&1; }; } \
		|| echo "chromium could not be installed: the live page is not tried in a browser"

# The live page opens while it trains, and the report at the end, where there is a screen; their places are printed.
demo: $(READY) ## train two agents to cross Freeway's road, without and with CoEX, in two minutes; watch, film and compare them
	@n=1; while [ -e runs/demo-$$n ]; do n=$$((n + 1)); done; run=runs/demo-$$n; \
	$(BIN)/coex watch $$run & watch=$$!; trap 'kill $$watch 2> /dev/null || true' EXIT; \
	for method in a2c a2c+coex; do \
		$(BIN)/coex train freeway --method $$method --steps 30000 --out $$run/$$method $(ARGS); \
		$(BIN)/coex eval $$run/$$method --episodes 8 --envs 8; \
		$(BIN)/coex video $$run/$$method --seconds 30; \
	done; \
	$(BIN)/coex report $$run/a2c $$run/a2c+coex --out $$run/report.html; \
	echo "'coex watch $$run' shows the page again"; \
	if [ "$$(uname)" = Darwin ]; then opener=open; \
	elif [ -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" ]; then opener=xdg-open; else opener=true; fi; \
	$$opener $$run/report.html > /dev/null 2>&1 || true

# The slow tests too: they hold the promises (it learns, it repeats itself) that a green run stands for.
test: $(READY) ## run all tests (a quick round: make test ARGS="-m 'not slow'")
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal --durations=10 $(ARGS)

check: lint test ## format, lint, types, import directions, then all tests

lint: $(READY)
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m mypy
	@$(BIN)/lint-imports

bench: $(READY) ## steps/s beside Stable-Baselines3's and a bare loop's, in about 40 minutes, then what each bonus costs, and runs on several processes (a look: make bench ARGS=--quick)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]" --constraint constraints.txt
	@$(BIN)/python -m benchmarks.speed $(ARGS)
	@$(BIN)/python -m benchmarks.bonuses $(if $(findstring --quick,$(ARGS)),--quick)
	@$(BIN)/python -m benchmarks.scale $(if $(findstring --quick,$(ARGS)),--quick)

# The Markdown that GitHub shows, and the docstrings of the public names; a warning is an error.
docs: $(READY) ## build the documentation's site, docs/_build/html/index.html
	@$(BIN)/python -c 'import furo, myst_parser, sphinx' 2>/dev/null || $(BIN)/python -m pip install --quiet \
		--disable-pip-version-check --editable ".[docs]" --constraint constraints.txt
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean: ## remove .venv and caches; runs and results stay
	rm -rf $(VENV) docs/_build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

environment:
	@[ -n "$(PYTHON)" ] && $(PYTHON) -c '$(SUITABLE)' 2>/dev/null \
		|| { echo "error: coex needs Python 3.11 or newer, with its venv module" >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version): a few minutes the first time."
	@$(PYTHON) -m venv --clear $(VENV)

# pip's full account goes to a file; the screen shows the packages' names as they come, or the last lines on failure.
$(READY): pyproject.toml constraints.txt $(if $(USABLE),,environment)
	@$(BIN)/python -m pip install --disable-pip-version-check --editable ".[dev]" --constraint constraints.txt 2>&1 \
		| tee $(VENV)/setup.log \
		| awk '/^Collecting/ {sub(/[^A-Za-z0-9_.-].*/, "", $$2); printf "%s ", $$2; n++} \
			/^Installing collected/ && n {printf "\nunpacking them …\n"} {fflush()}' \
		|| { tail -n 15 $(VENV)/setup.log >&2; echo "error: set-up failed; more in $(VENV)/setup.log" >&2; exit 1; }
	@touch $@

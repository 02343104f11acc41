# `make demo` and `make test` are the two commands; `make help` lists the rest.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help install demo test check chaos sabotage requirements clean

# The first of these that runs, is 3.11 or newer and can make virtual environments.
CANDIDATES := $(PYTHON) python3.13 python3.12 python3.11 python3.14 python3 python
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
FIND_PYTHON = for p in $(CANDIDATES); do if "$$p" -c '$(USABLE)' >/dev/null 2>&1; then echo "$$p"; break; fi; done

# Settings of a production installation, for its checks; nothing is connected to.
PRODUCTION := SIGNOFF_ENV=production SIGNOFF_BASE_URL=https://signoff.example.org \
  DATABASE_URL=postgresql://signoff@database.invalid/signoff SIGNOFF_BROKER_URL=redis://broker.invalid \
  SIGNOFF_SECRET_KEY=only-for-make-check-and-nothing-else-0123456789-abcdef \
  SIGNOFF_CHAIN_KEY=only-for-make-check-and-nothing-else-9876543210

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

$(BIN)/python:
	@python="$$($(FIND_PYTHON))"; \
	if [ -z "$$python" ]; then \
	  echo "Signoff needs Python 3.11 or newer with its venv module (Debian: apt-get install python3-venv)." >&2; exit 1; \
	fi; \
	rm -rf $(VENV) && "$$python" -m venv $(VENV)

# $(1): a requirements file. Exact versions and hashes, nothing else is installed.
define sync
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps -r $(1); \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(1); \
	fi
endef

$(VENV)/.base: requirements/base.txt | $(BIN)/python
	@echo "installing into $(VENV) ..."
	$(call sync,requirements/base.txt)
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.base
	@echo "installing what the tests need ..."
	$(call sync,requirements/dev.txt)
	@touch $@

install: $(VENV)/.dev ## make .venv with everything that running, testing and checking need

demo: $(VENV)/.base ## serve a demo with people, policies and runs; Ctrl-C ends it
	@exec $(BIN)/python manage.py up --demo

test: $(VENV)/.dev ## the whole suite: real database, workers and browser
	@$(BIN)/python -m pytest

check: $(VENV)/.dev ## lint, types, layers, migrations, production settings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@# It also warns that no database is there to compare with; none is needed.
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING

SECONDS := 100
SEED := 1
chaos: $(VENV)/.dev ## the counts that make test does a twentieth of; SECONDS=100 of kills, SEED=1
	@SIGNOFF_TEST_FULL=1 SIGNOFF_TEST_SEED=$(SEED) SIGNOFF_TEST_CHAOS_SECONDS=$(SECONDS) \
	  $(BIN)/python -m pytest -s --timeout 3600 tests/chaos tests/journal tests/approvals

sabotage: $(VENV)/.dev ## break the engine and the verdict, place by place; each must turn a test red
	@$(BIN)/python -m tests.sabotage

requirements: ## compile requirements/*.txt anew (needs uv)
	for name in base dev; do \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	    --no-emit-index-url --no-emit-find-links --output-file requirements/$$name.txt requirements/$$name.in || exit 1; \
	done

clean: ## remove .venv and caches; the database in .signoff stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache staticfiles
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

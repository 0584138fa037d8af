# make demo | test | lint | format | bench | clean | help

VENV := .venv
PY := $(VENV)/bin/python
PYTHON ?= python3
UV := $(shell uv --version >/dev/null 2>&1 && echo uv)

export PIP_ROOT_USER_ACTION := ignore
export PIP_DISABLE_PIP_VERSION_CHECK := 1

ifneq ($(UV),)
  INSTALL := uv pip install --quiet --python $(PY) -e
else
  INSTALL := $(PY) -m pip install --quiet -e
endif

.DEFAULT_GOAL := help
.PHONY: demo test test-sqlite test-postgres test-tokens services lint format bench clean help

help:  ## show this
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "om_django needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment (Debian: apt-get install python3-venv)."; \
	  rm -rf $(VENV); exit 1; }

# A stamp for each set of extras: installed again only when pyproject.toml has changed.
$(VENV)/.offline: pyproject.toml | $(VENV)/bin/python
	@echo "Installing om_django into $(VENV)"
	@$(INSTALL) ".[offline]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo "Installing om_django and its development tools into $(VENV)"
	@$(INSTALL) ".[dev]"
	@touch $(VENV)/.offline $@

demo: $(VENV)/.offline  ## play a long conversation through the memory: no keys, no services
	@$(PY) manage.py migrate --verbosity 0
	@$(PY) manage.py om_demo --create-admin

test: lint test-sqlite test-postgres test-tokens  ## everything: style, types, SQLite, PostgreSQL, without tokenizer
	@echo "All tests passed."

# Each run has files of its own, so that two runs do not meet.
test-sqlite: $(VENV)/.dev services  ## the suite on SQLite
	@echo "== SQLite"
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	  OM_TEST_SQLITE="$$dir/test.sqlite3" $(PY) -m pytest -q -n auto $(ARGS)

test-postgres: $(VENV)/.dev services  ## the suite on PostgreSQL, which it starts itself
	@echo "== PostgreSQL"
	@OM_TEST_DATABASE=postgres $(PY) -m pytest -q -n auto $(ARGS)

test-tokens: $(VENV)/.dev  ## the token tests with the estimator
	@echo "== Tokens, estimated"
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	  OM_TEST_SQLITE="$$dir/test.sqlite3" OM_DJANGO_TOKENIZER=estimate \
	  $(PY) -m pytest -q $(wildcard tests/core/test_tokens.py tests/core/test_images.py tests/test_demo.py)

services:
	@command -v redis-server >/dev/null || { \
	  sudo=; [ "$$(id -u)" = 0 ] || sudo="sudo -n"; \
	  if command -v apt-get >/dev/null && { [ -z "$$sudo" ] || $$sudo true 2>/dev/null; }; then \
	    echo "Installing redis-server"; \
	    $$sudo apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq redis-server >/dev/null; \
	  else \
	    echo "Please install redis-server (Debian: apt-get install redis-server; macOS: brew install redis)."; \
	    exit 1; \
	  fi; }

lint: $(VENV)/.dev  ## ruff and mypy
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: $(VENV)/.dev  ## let ruff fix and format
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

bench: $(VENV)/.dev  ## run the benchmarks
	@set -e; for file in $(wildcard benchmarks/*.py); do \
	  case $$file in */__init__.py|*/_*) continue;; esac; \
	  echo "== $$file"; $(PY) $$file $(ARGS); done

clean:  ## remove the virtual environment, caches and the demo's files
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis demo
	@rm -f demo.sqlite3 demo.sqlite3-*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two commands do everything on a fresh machine with Python 3.11, g++ and make: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt
NATIVE := CMakeLists.txt $(wildcard native/*)
SHELL := /bin/bash

.PHONY: all quickstart test lint format sanitize nightly clean

all: $(VENV)/.ready

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The build's own tools live in the environment too, so that a rebuild is incremental (no build isolation).
$(VENV)/.tools: constraints.txt | $(VENV)/bin/python
	$(PIP) scikit-build-core nanobind cmake ninja
	@touch $@

# The library, editable: Python changes need no reinstall, native changes recompile what changed.
$(VENV)/.ready: pyproject.toml $(NATIVE) $(VENV)/.tools
	$(PIP) --no-build-isolation -e .
	@touch $@

$(VENV)/.test: $(VENV)/.ready
	$(PIP) --no-build-isolation -e ".[test]"
	@touch $@

$(VENV)/.lint: constraints.txt | $(VENV)/bin/python
	$(PIP) ruff mypy clang-format
	@touch $@

quickstart: $(VENV)/.ready
	$(VENV)/bin/labelwood quickstart

test: $(VENV)/.test lint
	$(VENV)/bin/python -m pytest -n 2

lint: $(VENV)/.lint $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/clang-format --dry-run --Werror native/*.cpp native/*.h

format: $(VENV)/.lint
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/clang-format -i native/*.cpp native/*.h

clean:
	rm -rf $(VENV) .venv-* build

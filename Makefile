# Two commands do everything on a fresh machine with Python 3.11, g++ and make: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt
NATIVE := CMakeLists.txt $(wildcard native/*)
SHELL := /bin/bash

.PHONY: all quickstart test lint format sanitize bench clean

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

# Side by side with the peers, each in its own environment. LABELWOOD_DATA names the folder with the data sets.
.venv-pecos/.ready:
	$(PYTHON) -m venv .venv-pecos
	.venv-pecos/bin/python -m pip -q install torch==2.13.0
	.venv-pecos/bin/python -m pip -q install libpecos==1.2.8
	@touch $@

$(VENV)/.bench: $(VENV)/.ready
	$(PIP) scikit-learn
	@touch $@

bench: $(VENV)/.bench .venv-pecos/.ready
	$(VENV)/bin/python bench/tfidf.py --pecos-python .venv-pecos/bin/python
	$(VENV)/bin/python bench/xr_linear.py --pecos-python .venv-pecos/bin/python

# The core under AddressSanitizer and UndefinedBehaviorSanitizer, in an environment of its own, and the tests that
# exercise it. libasan must come before everything else in the process, hence the preload.
SAFE := .venv-sanitize
$(SAFE)/.ready: pyproject.toml constraints.txt $(NATIVE)
	test -d $(SAFE) || $(PYTHON) -m venv $(SAFE)
	$(SAFE)/bin/python -m pip -q install -c constraints.txt scikit-build-core nanobind cmake ninja
	$(SAFE)/bin/python -m pip -q install -c constraints.txt --no-build-isolation \
	  -C cmake.define.LABELWOOD_SANITIZE=ON -C build-dir=build/sanitize -C install.strip=false ".[test]"
	@touch $@

sanitize: $(SAFE)/.ready
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	HYPOTHESIS_SHARE=0.1 $(SAFE)/bin/python -m pytest -m native -p no:cacheprovider

clean:
	rm -rf $(VENV) .venv-* build

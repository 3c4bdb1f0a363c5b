## make demo   set up and run the main job on the drawn catalogue, no network needed once set up
## make app    set up and serve the search app, on the drawn catalogue or on indexes: make app ARGS="--store index"
## make test   set up and run the tests
## make lint   set up and run ruff and mypy
## make docs   set up and build the documentation into site/
PYTHON      ?= python3
CONSTRAINTS ?= constraints.txt
VENV        := .venv
BIN         := $(VENV)/bin
STAMP       := $(VENV)/.installed
# Models and data come with the package: nothing may reach for a hub, and Haystack's usage statistics stay home.
OFFLINE     := HF_HUB_OFFLINE=1 HAYSTACK_TELEMETRY_ENABLED=False

.DEFAULT_GOAL := help
.PHONY: help setup demo app test lint docs clean

help:
	@sed -n 's/^## //p' Makefile

setup: $(STAMP)

$(STAMP): pyproject.toml $(CONSTRAINTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "radical-haystack needs Python 3.10 or newer; choose one with: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	@$(OFFLINE) $(BIN)/radical-haystack demo

app: $(STAMP)
	@$(OFFLINE) $(BIN)/radical-haystack app $(ARGS)

# One thread per worker: two workers with two threads each would fight for the cores.
test: $(STAMP)
	@$(OFFLINE) OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis demo-output site

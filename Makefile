# Every target sets up .venv by itself; only python3, make and git are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check docs bench clean

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0  # first: the CPU build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(READY)

demo: $(READY)  ## from two tables to intervals, metrics and a report
	$(BIN)/qpignn demo --out demo-output

test: check  ## all checks and tests
	$(BIN)/python -m pytest -n 2

check: $(READY)  ## style, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)  ## the documentation as a site, in site/; warnings are errors
	$(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

bench: $(READY)  ## speed and memory against plain PyG, side by side
	$(BIN)/python benchmarks/epoch.py
	$(BIN)/python benchmarks/methods.py

clean:
	rm -rf $(VENV) build dist site demo-output .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

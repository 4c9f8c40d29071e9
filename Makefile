# Every target sets up .venv by itself; only python3, make and git are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-slow check coverage mutants docs results results-check bench fuzz faults audit clean

# `make CONSTRAINTS=` takes the newest versions in place of the tested ones.
CONSTRAINTS ?= --constraint constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0  # first: the CPU build
	$(PIP) $(CONSTRAINTS) --editable '.[dev]'
	touch $(READY)

demo: $(READY)  ## from two tables to intervals, metrics and a report
	$(BIN)/qpignn demo --out demo-output

test: check  ## all checks, and all tests but the slow ones
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(READY)  ## tests that kill processes, start a cluster, or complete a grid (methods and encoders, tables of the paper)
	$(BIN)/python -m pytest -n 2 -m slow

check: $(READY)  ## style, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: $(READY)  ## branch coverage of src, also in processes that tests start; fails below 97 % of branches
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2
	$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --show-missing > $(VENV)/coverage.log; code=$$?; \
	echo 'files below 97 %, and all together:'; \
	awk 'NR == 1 || /^TOTAL/ || (/%/ && $$6 + 0 < 97)' $(VENV)/coverage.log; \
	$(BIN)/coverage json --quiet -o $(VENV)/coverage.json; \
	$(BIN)/python -c 'import json; \
	found = json.load(open("$(VENV)/coverage.json"))["totals"]["percent_branches_covered"]; \
	print(f"branches alone: {found:.1f} %"); raise SystemExit(found < 97)' || code=1; exit $$code

mutants: $(READY)  ## small wrong changes to losses, metrics and calibration that no test notices
	$(BIN)/python tests/mutants/run.py

docs: $(READY)  ## the documentation as a site, in site/; warnings are errors
	$(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

# One to two hours on two cores; killed, it goes on where it stopped. `SEEDS=2` makes a preview.
JOBS ?= 2
REMAKE := $(BIN)/python docs/results/remake.py $(if $(RESULTS),--results $(RESULTS))
results: $(READY)  ## run what the pages of docs/results lack, then fill them and the README's tables
	$(REMAKE) --jobs $(JOBS) $(if $(SEEDS),--seeds $(SEEDS))

results-check: $(READY)  ## which pages of results were made with other code than this
	$(REMAKE) --check

# About twelve minutes and 11 GB of memory on a quiet machine; half of it is the graph of 20 M edges,
# which `SHAPES=small,counties,chameleon,crocodile,large` leaves out of the first table.
SHAPES ?= small,counties,chameleon,crocodile,large,huge
bench: $(READY)  ## speed and memory against plain PyG, the roofline, and a scaling curve, drawn
	$(BIN)/python benchmarks/epoch.py --shapes $(SHAPES)
	$(BIN)/python benchmarks/scaling.py --out bench-output
	$(BIN)/python benchmarks/fit_times.py
	$(BIN)/python benchmarks/methods.py

# Without atheris (it has no wheel for every Python) inputs are changed by chance, not by coverage.
SECONDS ?= 600
fuzz: $(READY)  ## readers, loaders and fits on hostile inputs; what crashes is kept in fuzz-crashes/
	-$(PIP) $(CONSTRAINTS) --only-binary atheris --editable '.[fuzz]'
	$(BIN)/python tests/fuzz/run.py --seconds $(SECONDS)

# Some six minutes of two cores: 377 faults, 160 of them kills, at steps that chance chooses, then
# 200 rounds of two processes with equal ids, and of two threads, that save to one folder.
# `MOST=10000` tries every step, `SEED=1` repeats a run.
MOST ?= 6
faults: $(READY)  ## kills, full disks and company wherever something is written
	$(BIN)/python tests/faults/run.py --most $(MOST) --timed 8 $(if $(SEED),--seed $(SEED))

audit: $(READY)  ## known holes in the versions of constraints.txt; asks the advisory service
	@$(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip --progress-spinner off \
	    > $(VENV)/audit.log 2>&1; code=$$?; cat $(VENV)/audit.log; \
	grep -q 'known vulnerabilit' $(VENV)/audit.log || \
	    echo 'make audit: pip-audit could not ask the advisory service, so nothing was checked'; \
	exit $$code

clean:
	rm -rf $(VENV) build dist site demo-output bench-output fuzz-crashes .coverage* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

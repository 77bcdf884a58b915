# Every verb works on a fresh clone with nothing but Python 3.11+ and make: the first one that runs
# makes `.venv`, and a change of pyproject.toml or constraints.txt makes it again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

CONSTRAINTS ?= -c constraints.txt

.PHONY: help install demo test test-fast attack test-oldest docs wheel lint type fmt bench clean

help:
	@echo "make demo    five methods on handwritten digits, the table and the page; no download"
	@echo "make test    every test, doctests included"
	@echo "make attack  thousands of damaged files, signals and kills, counted; about half an hour"
	@echo "make test-fast    what one change needs: no process, no browser, nothing slow"
	@echo "make test-oldest  every test with the lowest versions that pyproject.toml promises"
	@echo "make docs    the site in docs/_build/html; a warning is an error"
	@echo "make wheel   build, check and try the wheel and the sdist in empty environments"
	@echo "make lint    ruff: lint and format, nothing is changed"
	@echo "make type    mypy --strict"
	@echo "make fmt     ruff: format and fix"
	@echo "make bench   speed as ratios against named baselines"
	@echo "make clean   remove .venv and everything that was built"

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else \
	  f"equida needs Python 3.11 or newer, {sys.executable} is {v[0]}.{v[1]}: set PYTHON=...")'
	@echo "Setting up $(VENV) (once; two to four minutes)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  $(CONSTRAINTS) -e '.[all,dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/equida bench digits --methods source_only,max_square,bnm,cwsm,nsm --seeds 5 \
	  --measures --out demo/runs
	@$(BIN)/equida report demo/runs --title "MNIST and UCI digits" --out demo/report.html

# In as many processes as there are cores, up to four: each loads torch.
JOBS ?= $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() or 1, 4))')

test: $(STAMP)
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadscope

attack: $(STAMP)
	@$(BIN)/python -m tests.attack

test-fast: $(STAMP)
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadscope --fast

# torch and torchvision stay those of constraints.txt: older ones bring CUDA to every machine.
test-oldest:
	@$(PYTHON) -m venv $(VENV)-oldest
	@$(VENV)-oldest/bin/python tools/oldest.py torch torchvision > $(VENV)-oldest/constraints.txt
	@$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c constraints.txt -c $(VENV)-oldest/constraints.txt -e '.[all,dev]'
	@$(VENV)-oldest/bin/python -m pytest -q -n $(JOBS) --dist loadscope

docs: $(VENV)/docs-installed
	@$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

$(VENV)/docs-installed: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) -e '.[docs]'
	@touch $@

wheel: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	@$(BIN)/python tools/check_wheel.py

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

type: $(STAMP)
	@$(BIN)/mypy

fmt: $(STAMP)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP)
	@$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-peers demo build dist docs/_build docs/_generated docs/examples docs/methods .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

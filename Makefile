# Every verb works on a fresh clone with nothing but Python 3.11+ and make: the first one that runs
# makes `.venv`, and a change of pyproject.toml or constraints.txt makes it again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: help install demo test attack lint type fmt bench clean

help:
	@echo "make demo    eleven methods on handwritten digits, the table and the page; no download"
	@echo "make test    every test, doctests included"
	@echo "make attack  thousands of damaged files, signals and kills, counted; about half an hour"
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
	  -c constraints.txt -e '.[all,dev]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/equida bench digits --methods all --seeds 1 --measures --out demo/runs
	@$(BIN)/equida report demo/runs --title "MNIST and UCI digits" --out demo/report.html

test: $(STAMP)
	@$(BIN)/python -m pytest -q

attack: $(STAMP)
	@$(BIN)/python -m tests.attack

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
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Two commands need nothing but Python 3.11, git, gcc and Node: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test lint types contracts pytest statistical spark benchmarks coverage clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/python examples/demo.py

test: lint types contracts pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

contracts: $(STAMP)
	$(BIN)/lint-imports --no-cache

pytest: $(STAMP)
	$(BIN)/pytest -n 2 -q -m "not slow and not spark"

# the full Monte Carlo runs behind every promised probability
statistical: $(STAMP)
	$(BIN)/pytest -n 2 -q -m "statistical or slow"

# counting on a local Spark cluster of two workers; needs Java
spark: $(STAMP)
	$(BIN)/python -m pip install --quiet 'pyspark>=3.5'
	$(BIN)/pytest -q -m spark tests/test_spark.py

# ratios to peers and limits, each in one run; results in benchmarks/results
benchmarks: $(STAMP)
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

coverage: $(STAMP)
	$(BIN)/coverage run -m pytest -q -m "not slow and not spark" && $(BIN)/coverage report

clean:
	rm -rf $(VENV) build dist src/truearm/lab/__pycache__

# `make demo` needs Python 3.11 and nothing else, `make test` also git, gcc and Node.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOGS   := build/logs
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check
BASE   := $(VENV)/.base
STAMP  := $(VENV)/.installed
PEERS  := $(VENV)/.peers

.PHONY: demo test lint types contracts pytest statistical spark bench made site release lowest coverage clean

# print one line: the name of a part and its outcome; its output is in build/logs, and is shown if it failed
define part
@mkdir -p $(LOGS); printf '%-10s' '$(1)'; \
if { $(2); } >$(LOGS)/$(1).log 2>&1; then echo "ok      $$(tail -n 1 $(LOGS)/$(1).log)"; \
else echo "failed"; cat $(LOGS)/$(1).log; exit 1; fi
endef

$(BASE): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing truearm into $(VENV) ..."
	@$(PIP) --editable .
	@touch $(BASE)

$(STAMP): $(BASE)
	@echo "Installing what the tests need ..."
	@$(PIP) --upgrade 'pip>=25.1'
	@$(PIP) --editable . --group dev
	@touch $(STAMP)

$(PEERS): $(STAMP)
	@echo "Installing the peers ..."
	@$(PIP) --group bench
	@touch $(PEERS)

demo: $(BASE)
	@$(BIN)/python examples/demo.py

test: lint types contracts pytest

lint: $(STAMP)
	$(call part,lint,$(BIN)/ruff format --check . && $(BIN)/ruff check .)

types: $(STAMP)
	$(call part,types,$(BIN)/mypy)

contracts: $(STAMP)
	$(call part,contracts,$(BIN)/lint-imports --no-cache && echo "imports point down")

pytest: $(STAMP)
	$(call part,pytest,$(BIN)/pytest -n 3 --dist worksteal -q -m "not slow and not spark")

# the full Monte Carlo runs behind every stated error rate
statistical: $(STAMP)
	$(BIN)/pytest -n 3 --dist worksteal -q --hypothesis-profile full -m "statistical or slow or hypothesis"

# counting on a local Spark cluster of two workers; needs Java
spark: $(PEERS)
	$(BIN)/pytest -q -m spark tests/test_spark.py

# all benchmarks and their peers in small sizes, within 45 minutes; the results are in benchmarks/RESULTS.md
bench: $(PEERS)
	$(BIN)/python benchmarks/run_all.py

# generated files that are kept in the repository: pictures, the man page, the HTTP reference
made: $(STAMP)
	$(BIN)/python docs/made.py
	@if command -v chromium >/dev/null; then $(BIN)/python docs/screens.py; else echo "no chromium: docs/screens.py was not run"; fi

# the documentation, in build/site; every warning is an error
site: $(STAMP)
	$(call part,site,$(BIN)/python docs/pages.py build/pages && \
	$(BIN)/sphinx-build -q -W --keep-going build/pages/docs build/site && echo "build/site/index.html")

# build, check and install a release; nothing is uploaded
release: $(STAMP)
	$(BIN)/python tools/release.py

# the quick tests with the lowest versions of the dependencies that pyproject.toml allows
lowest:
	$(PYTHON) tools/lowest.py

coverage: $(STAMP)
	$(BIN)/coverage run -m pytest -n 3 --dist worksteal -q -m "not slow and not spark"; \
	$(BIN)/coverage combine -q && $(BIN)/coverage report --skip-covered

clean:
	rm -rf $(VENV) build dist src/truearm/lab/__pycache__

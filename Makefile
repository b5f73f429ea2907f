# TOPO reaches the program as one word, whatever it holds. ARGS is put on the command line as typed, so quotes
# in it work: make test ARGS="-k 'ring or mesh'".

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-vm scenario vm vm-test vagrant-box npb paper test test-long test-fast explore mutants fuzz soak chaos supply advisories check bench docs docs-run container lock clean

TOPO ?= torus4x4
ENGINE ?=
NPB_DIR ?=
STRICT ?=
export TOPO ENGINE NPB_DIR

# Labs need root. Python and numba write no caches into the clone as root, so that it stays its owner's. What sudo's
# policy may keep from a program is given to it by name.
SUDO := $(shell [ "$$(id -u)" = 0 ] || ! command -v sudo >/dev/null || echo sudo -E -H env PYTHONDONTWRITEBYTECODE=1 NUMBA_CACHE_DIR=/var/cache/testbed 'NPB_DIR="$$NPB_DIR"')

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## install what running scenarios needs
	@scripts/setup runtime
	@[ -z "$(filter setup,$(MAKECMDGOALS))" ] || echo "next: source .venv/bin/activate, then testbed plan torus4x4"

setup-dev:
	@scripts/setup dev

setup-vm:
	@scripts/setup vm

# Exit code 3 of `testbed run` is the verdict *warn*: figures that can be used with a reserve, which it has told.
RESERVE := make: the verdict is warn, which is no failure: the figures can be used with the reserve told above \
	(exit code 3 of `testbed run`, and of make with STRICT=1)

scenario: $(if $(filter vm,$(ENGINE)),vm,setup) ## run a scenario, e.g. make scenario TOPO=torus4x4; in a virtual machine with ENGINE=vm
	@$(SUDO) .venv/bin/testbed run $(if $(ENGINE),--engine "$$ENGINE") $(ARGS) -- "$$TOPO" \
		|| { code=$$?; $(if $(filter-out 0,$(STRICT)),,[ $$code = 3 ] && echo '$(RESERVE)' >&2 ||) exit $$code; }

vm: setup-vm ## build the image of the virtual machine, unless it is there (2 to 6 min, takes 5 GB meanwhile)
	@$(SUDO) .venv/bin/testbed vm build

vm-test: vm ## boot it and run the tests of labs on the kernel's Open vSwitch in it
	@$(SUDO) .venv/bin/testbed vm test $(if $(ARGS),-- $(ARGS))

vagrant-box: vm ## make boxes for Vagrant from it, so that `vagrant up` needs no network (e.g. ARGS="--provider libvirt")
	@$(SUDO) .venv/bin/testbed vm box $(ARGS)

npb: setup ## build the eight NAS Parallel Benchmarks of mpi_jobs/npb
	@$(MAKE) --no-print-directory -C mpi_jobs/npb MPICC="$(CURDIR)/.venv/bin/mpicc"

paper: setup ## obtain the papers' numbers and compare them with the published ones (quickly: ARGS=--quick)
	@$(SUDO) .venv/bin/testbed paper $(ARGS)

# tests/conftest.py says what goes together, and in which order.
PYTEST := .venv/bin/python -m pytest --dist loadgroup --no-loadscope-reorder
# Tests of labs mostly wait, so that two processes a processor are at work.
WORKERS ?= $(shell n=$$((2 * $$(nproc))); echo $$((n < 8 ? n : 8)))

TESTED := $(SUDO) $(PYTEST) -n $(WORKERS) $(if $(SUDO),-p no:cacheprovider)
test: setup-dev ## run the tests but for the longest (those of labs need root)
	@$(TESTED) -m "not long" $(ARGS)

test-long: setup-dev ## run the longest ones, which `make test` leaves out and CI runs as well
	@$(TESTED) -m long $(ARGS)

test-fast: setup-dev ## run the quick ones of those that need no root
	@$(PYTEST) -n $$(nproc) -m "not lab and not slow and not long" $(ARGS)

# Examples of Hypothesis that no run has seen; SEED draws those of another run again.
SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
explore: export TESTBED_EXPLORE_SECONDS ?= 60
explore: setup-dev ## search for counterexamples for a minute (TESTBED_EXPLORE_SECONDS=N: for N seconds)
	@echo "the seed is $(SEED); the same examples again: make explore SEED=$(SEED)"
	@$(PYTEST) -n $$(nproc) -m hypothesis --hypothesis-seed=$(SEED) tests/property tests/unit $(ARGS)

mutants: setup-dev ## plant small faults and see which ones tests notice (e.g. ARGS="--count 50 --only testbed/fabric/routing")
	@.venv/bin/python -m benchmarks.mutants $(ARGS)

fuzz: setup-dev ## feed nearly right scenarios, plans, results and files, and store what gets no sentence (e.g. ARGS="--count 100000")
	@.venv/bin/python -m benchmarks.fuzz $(ARGS)

soak: setup-dev ## load, break and mend a lab of 64 hosts for a while; nothing may grow (e.g. ARGS="--seconds 3600")
	@$(SUDO) .venv/bin/python -m benchmarks.soak $(ARGS)

chaos: setup-dev ## kill `testbed up` at random moments and look for what is left (e.g. ARGS="--tries 500 --seed 3")
	@$(SUDO) .venv/bin/python -m benchmarks.chaos $(ARGS)

check: setup-dev ## formatting, lint, types, layers, and that generated files are current
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	.venv/bin/python scripts/check_names.py
	.venv/bin/testbed schema --check

docs: ## build the documentation site into .cache/site; a broken link is a failure
	@scripts/setup docs
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet
	@echo "open $(CURDIR)/.cache/site/index.html"

docs-run: setup-dev vm ## run the documentation's commands that take minutes each (e.g. ARGS="-k storm")
	@$(SUDO) .venv/bin/python -m pytest -m minutes $(if $(SUDO),-p no:cacheprovider) tests/lab/test_docs_minutes.py $(ARGS)

bench: setup ## measure against stock Mininet on this machine
	@$(SUDO) .venv/bin/python -m benchmarks $(ARGS)

container: ## build the container's image and try it, also a lab in it (needs buildah; 5 to 15 min)
	@$(SUDO) scripts/container

# Nothing else here needs these tools, so they live in an environment of their own, from a lock file as everything.
TOOLS := .cache/tools/bin
.cache/tools/stamp: locks/tools.txt
	@rm -rf .cache/tools
	@/usr/bin/python3 -m venv .cache/tools
	@$(TOOLS)/pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r locks/tools.txt
	@touch $@

COMPILE := $(TOOLS)/uv pip compile --quiet --python /usr/bin/python3 --python-version 3.10 --universal \
	--fork-strategy fewest --generate-hashes --no-header --no-emit-index-url

lock: .cache/tools/stamp ## regenerate locks/ from pyproject.toml (newest versions: ARGS=--upgrade)
	$(COMPILE) pyproject.toml --group build $(ARGS) -o locks/runtime.txt
	$(COMPILE) pyproject.toml --group build $(ARGS) --extra dev -c locks/runtime.txt -o locks/dev.txt
	$(COMPILE) --group tools $(ARGS) -o locks/tools.txt

# What is installed, for those who must answer for it.
supply: setup .cache/tools/stamp ## list what is installed: a bill of materials (CycloneDX) and the licences, in .cache
	@$(TOOLS)/cyclonedx-py environment --pyproject pyproject.toml --mc-type application -o .cache/sbom.json .venv/bin/python
	@$(TOOLS)/pip-licenses --python .venv/bin/python --from mixed --order license --format markdown --output-file .cache/licences.md
	@echo ".cache/sbom.json, .cache/licences.md"

advisories: supply ## ask for known faults of what is installed; the answers come from the network
	@$(TOOLS)/pip-audit --strict --require-hashes --disable-pip -r locks/runtime.txt $(ARGS)
	@$(TOOLS)/pip-audit --strict --require-hashes --disable-pip -r locks/tools.txt $(ARGS)

CLEAN = rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
	mpi_jobs/*/build mpi_jobs/npb/official/build $$(find . -path ./results -prune -o -name __pycache__ -print)

clean: ## remove .venv, caches and build products, never results/
	@$(CLEAN) 2>/dev/null || $(SUDO) $(CLEAN)

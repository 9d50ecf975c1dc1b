# make demo, make test: set-up included. `make test` leaves out the slow tests, `make test-all` none. Nothing here needs root.
SHELL := /bin/bash
# uv from the PATH, else one of our own in .uv/ (installed by pip).
UV := $(shell command -v uv || echo .uv/bin/uv)
export UV_PYTHON_DOWNLOADS := never

.PHONY: install demo test test-all lint docs verify clean

# Compiled here too, for where PYTHONDONTWRITEBYTECODE is set each command would compile its own.
install: $(filter .uv/bin/uv,$(UV))
	@command -v cargo >/dev/null || { echo "loadstone: no Rust toolchain (cargo); get one from your distribution or rustup" >&2; exit 3; }
	@command -v cc >/dev/null || { echo "loadstone: no C compiler (cc); install one: apt-get install gcc libc6-dev" >&2; exit 3; }
	$(UV) sync --locked --quiet --compile-bytecode
	@.venv/bin/python -m compileall -q src/loadstone

.uv/bin/uv:
	python3 -m venv .uv
	.uv/bin/pip install --quiet 'uv>=0.13'

demo: install
	@.venv/bin/loadstone demo

# Tests mostly wait, so several run at a time, in the order that tests/conftest.py gives them. Slow
# tests load real Keystones: more than four at a time starve them, and they miss their rates. Those
# that measure run afterwards: `quiet` ones two at a time, for they leave a core idle, then those
# that run alone. Environments of the lab are made once for all of them.
PYTEST := LOADSTONE_TEST_HOME=$${LOADSTONE_TEST_HOME:-$(CURDIR)/target/test-home} .venv/bin/pytest -q --durations=20
TOGETHER := $(PYTEST) --dist loadfile --no-loadscope-reorder

test: install
	cargo test --quiet --workspace
	$(TOGETHER) -n 5 -m "not alone and not quiet and not slow"
	$(TOGETHER) -n 2 -m "quiet and not slow"
	$(PYTEST) -m "alone and not slow"

test-all: install
	cargo test --quiet --workspace
	$(TOGETHER) -n 4 -m "not alone and not quiet"
	$(TOGETHER) -n 2 -m "quiet"
	$(PYTEST) -m "alone"

lint: install
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

# A broken link or reference fails.
docs: install
	.venv/bin/sphinx-build -W --keep-going -n -q -b html docs target/docs
	@echo target/docs/index.html

# Measures what the docs claim (docs/verification.md). LIST=1 shows the parts; ONLY=search,kills runs
# some of them; QUICK=1 only proves that they run; RALLY=VENV has Rally for engine-rally.
export RALLY
verify: install
	@.venv/bin/python -m verification $(if $(LIST),--list) $(if $(QUICK),--quick) $(if $(ONLY),--only '$(ONLY)')

clean:
	rm -rf .venv .uv target dist src/loadstone/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

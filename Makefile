# make demo, make test: set-up included. Nothing here needs root.
SHELL := /bin/bash
# uv from the PATH, else one of our own in .uv/ (installed by pip).
UV := $(shell command -v uv || echo .uv/bin/uv)
export UV_PYTHON_DOWNLOADS := never

.PHONY: install demo test lint bench bench-capacity bench-hot clean

install: $(filter .uv/bin/uv,$(UV))
	@command -v cargo >/dev/null || { echo "loadstone: no Rust toolchain (cargo); get one from your distribution or rustup" >&2; exit 3; }
	@command -v cc >/dev/null || { echo "loadstone: no C compiler (cc); install one: apt-get install gcc libc6-dev" >&2; exit 3; }
	$(UV) sync --locked --quiet --compile-bytecode

.uv/bin/uv:
	python3 -m venv .uv
	.uv/bin/pip install --quiet 'uv>=0.13'

demo: install
	@.venv/bin/loadstone demo

test: install
	cargo test --quiet --workspace
	.venv/bin/pytest -q

lint: install
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-cache
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

bench-capacity: install
	.venv/bin/python -m bench.capacity --processes 2

# The hot path alone, with what `make install` has built.
bench-hot:
	cargo bench --profile editable -p loadstone-engine --features bench --bench hot_path

bench: install
	@.venv/bin/python -m bench $(BENCH)

clean:
	rm -rf .venv .uv target dist src/loadstone/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `make demo` and `make test` include the set-up. `make check` is the first minute of `make test`.
# `make verify` is everything that measures. Nothing here needs root.
SHELL := /bin/bash
# uv from the PATH, else one of our own in .uv/ (installed by pip).
UV := $(shell command -v uv || echo .uv/bin/uv)
export UV_PYTHON_DOWNLOADS := never

.PHONY: install toolchain demo check lint types pure test rust docs man parts verify requirements golden \
    keystone-rust slowest clean release-tools licenses wheels reproduce wheelhouse dependencies release

# Compiled here too, for where PYTHONDONTWRITEBYTECODE is set each command would compile its own.
install: toolchain $(filter .uv/bin/uv,$(UV))
	$(UV) sync --locked --quiet --compile-bytecode
	@.venv/bin/python -m compileall -q src/loadstone

# Before anything is fetched or built.
toolchain:
	@release/toolchain.sh

.uv/bin/uv: | toolchain
	python3 -m venv .uv
	.uv/bin/pip install --quiet 'uv>=0.13'

demo: install
	@.venv/bin/loadstone demo

# Bytecode is kept, also where PYTHONDONTWRITEBYTECODE is set: compiling the tests takes 10 s.
PYTEST := env -u PYTHONDONTWRITEBYTECODE .venv/bin/pytest -q --durations=10

# The gate: what is cheap to check comes first, and the first failures end it.
test:
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory rust docs parts

# A minute: formatting, lints, types, and the tests that need neither a server nor a process.
check: install
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint types pure

lint: install
	.venv/bin/ruff check --quiet
	.venv/bin/ruff format --check --quiet
	.venv/bin/lint-imports --no-cache
	cargo fmt --all --check

types: install
	.venv/bin/mypy

pure: install
	$(PYTEST) -m pure -n 2 --dist loadfile --maxfail=10 --junitxml=target/junit-pure.xml

rust: install
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo test --quiet --workspace

# Every real component once. Tests mostly wait, so more run at a time than there are cores.
parts: install
	$(PYTEST) -m "not pure and not verify" -n 4 --dist loadfile --maxfail=3 --junitxml=target/junit-parts.xml

# The slowest tests of the last run.
slowest:
	@.venv/bin/python tests/slowest.py

# What hosts of a fleet install beside Loadstone, with hashes. A test compares it with uv.lock.
requirements:
	$(UV) export --quiet --locked --format requirements.txt --extra fleet --no-dev \
	    --no-emit-project --no-annotate --no-header \
	    --output-file src/loadstone/engine/fleet/requirements.txt >/dev/null

# Measures what the docs claim (docs/verification.md). LIST=1 shows the parts; ONLY=search,kills runs
# some of them; QUICK=1 only proves that they run; RALLY=VENV has Rally for engine-rally.
export RALLY
verify: install
	@.venv/bin/python -m verification $(if $(LIST),--list) $(if $(QUICK),--quick) $(if $(ONLY),--only '$(ONLY)')

# Keystone in Rust, for the lab: SOURCE is a checkout of openstack-experimental/keystone. Half an hour.
keystone-rust: install
	@verification/keystone_rust.sh '$(SOURCE)' \
	    "$$(.venv/bin/python -c 'from loadstone.lab.keystone.rust import folder; print(folder())')"

# Write the golden files anew; review the diff.
golden: install
	$(PYTEST) tests/golden tests/cli/test_messages.py --golden-update

# A broken link or reference fails.
docs: install
	.venv/bin/sphinx-build -W --keep-going -n -q -b html docs target/docs
	@echo target/docs/index.html

# The manual page of all commands, from the same source.
man: install
	.venv/bin/sphinx-build -q -b man docs target/man
	@echo target/man/loadstone.1

# The tools that make wheels (maturin, zig, ...) have an environment of their own.
RELEASE_ENVIRONMENT := target/release-environment
RELEASE := $(RELEASE_ENVIRONMENT)/bin/python -m release

release-tools: toolchain $(filter .uv/bin/uv,$(UV))
	@UV_PROJECT_ENVIRONMENT=$(RELEASE_ENVIRONMENT) $(UV) sync --locked --quiet --only-group release

# Wheels and the source distribution, in dist/. REPOSITORY=https://HOST/OWNER/loadstone makes the links
# of the README absolute and names the project's pages in the metadata.
wheels: release-tools
	@$(RELEASE) wheels $(if $(REPOSITORY),--repository '$(REPOSITORY)')

# Builds a second time, elsewhere and from nothing, and compares the hashes.
reproduce: wheels
	@$(RELEASE) reproduce $(if $(REPOSITORY),--repository '$(REPOSITORY)')

# dist/wheelhouse: all that an installation without internet needs. EXTRAS=fleet,monitor adds optional
# dependencies, LAB=1 what `loadstone demo` installs.
wheelhouse: release-tools
	@$(RELEASE) wheelhouse --uv $(UV) $(if $(EXTRAS),--extras '$(EXTRAS)') $(if $(LAB),--lab)

# Licences of the Rust crates that a wheel contains.
licenses: release-tools
	@$(RELEASE) licenses

# Licences and sources of all dependencies, and advisories where their data can be had.
dependencies: release-tools
	@$(RELEASE) dependencies --uv $(UV)

# Everything that is handed out, checked. Publishes nothing, and says what is left to do.
release: release-tools
	@$(RELEASE) release --repository '$(REPOSITORY)' --make '$(MAKE)' --uv $(UV)

clean:
	rm -rf .venv .uv target dist src/loadstone/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `make run` builds netloom and shows a first comparison of routing schemes; `make test` passes every test.

PYTHON ?= python3
VENV := .venv

.PHONY: run build library test checked loom miri fuzz mutants wheel installed dist dist-test lint studies bench bench-scale bench-set-up bench-schemes bench-threads bench-driven bench-jobs browser picture book kill-test

run: build
	./target/release/netloom study examples/compare.toml
	./target/release/netloom report runs/examples-compare

# All that is built takes part in choosing features (--workspace), so that no target compiles the dependencies once more.
build:
	cargo build --release --workspace --bin netloom

# The library for C: target/release/libnetloom.so, to be used with crates/capi/include/netloom.h.
library:
	cargo build --release --workspace --lib

# Unit tests of what a simulation consists of are built once, with checks that integration tests go without; the others with all optimisations.
test: $(VENV)/installed browser build
	cargo test --release --workspace --quiet --bins --test '*'
	cargo test --release --workspace --quiet --doc
	cargo test --release --workspace --quiet --lib $(addprefix --exclude netloom-,$(CHECKED))
	$(MAKE) checked
	$(MAKE) loom
	$(MAKE) installed
	$(VENV)/bin/python -m pytest -q -n 2 --dist loadfile tests

# The unit tests of what a simulation consists of, and those of packets that switches hold back, with overflow checks and debug assertions on; `cargo test` does the same with all tests, in much longer.
CHECKED := units engine fabric routing transport sim record scenario
checked:
	cargo test --profile checked --quiet --lib --test conweave $(addprefix --package netloom-,$(CHECKED))

# How the engine's threads meet, in every order in which they can: seconds. Apart, as all is compiled for loom there.
loom:
	RUSTFLAGS="--cfg loom" cargo test --release --package netloom-engine --lib --target-dir target/loom --quiet -- loom

# The engine's unit tests and its contract under Miri, which finds undefined behaviour and data races: four minutes, with a nightly toolchain. Property tests draw a few cases; runs of thousands of
# epochs, and the toy network that is compared with the reference executor, take too long there.
MIRI_SKIP := an_observer_sees_a_run the_spin_budget no_thread_gets_ahead sorts_as_a_general_sort
miri:
	@cargo +nightly miri --version >/dev/null 2>&1 || { echo "make miri needs Miri: rustup toolchain install nightly --component miri" >&2; exit 1; }
	PROPTEST_CASES=3 MIRIFLAGS="-Zmiri-disable-isolation" cargo +nightly miri test --package netloom-engine --lib --test contract --target-dir target/miri --quiet -- $(addprefix --skip ,$(MIRI_SKIP))

# Every reader of files with mutated files, FUZZ_SECONDS each, with a nightly toolchain; TARGETS="goal claims" for some of them. What brings one down lies in fuzz/artifacts, and the others go on.
FUZZ_SECONDS ?= 60
fuzz:
	@rustc +nightly --version >/dev/null 2>&1 || { echo "make fuzz needs a nightly compiler: rustup toolchain install nightly" >&2; exit 1; }
	fuzz/run.sh -max_total_time=$(FUZZ_SECONDS) $(TARGETS)

# The Python package, for Python 3.10 and later: target/wheels/netloom-….whl.
wheel: $(VENV)/installed
	rm -rf target/wheels
	$(VENV)/bin/maturin build --quiet --release --out target/wheels

# The wheel as users get it: alone with what it needs in a new environment, and beside the tests' tools.
installed: wheel
	$(PYTHON) -m venv --clear target/fresh
	target/fresh/bin/python -m pip install --quiet --disable-pip-version-check target/wheels/netloom-*.whl
	cd target/fresh && bin/python -c 'import netloom; print(netloom.run({"topology": {"kind": "fat-tree", "k": 4}}))'
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/netloom-*.whl

# A release: static binaries with manual pages and completions, wheels, checksums and the list of crates, for x86-64 and aarch64, in
# target/dist/netloom-VERSION. Zig from PyPI is the C compiler and linker for all of them; rustup installs what Rust needs for other processors.
DIST := target/dist-tools
dist: $(DIST)/installed
	$(DIST)/bin/python release/dist.py $(addprefix --machine ,$(MACHINES))

# What `make dist` built, installed and tried without Rust.
dist-test:
	$(PYTHON) release/check.py

$(DIST)/installed: release/requirements.txt
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python -m pip install --quiet --disable-pip-version-check -r release/requirements.txt
	touch $@

# The tools that read netloom's outcomes in the tests.
$(VENV)/installed: tests/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	touch $@

# The browser that the tests of the report drive. Without the right to install one, the tests say what is missing.
browser:
	@for name in "$$CHROMIUM" chromium chromium-browser google-chrome google-chrome-stable chrome; do \
	  if command -v "$$name" >/dev/null; then exit 0; fi; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	fi

lint: $(VENV)/installed build
	cargo fmt --all --check
	cargo clippy --release --workspace --features netloom/png --all-targets --quiet -- -D warnings
	RUSTFLAGS="--cfg loom" cargo clippy --release --package netloom-engine --lib --tests --target-dir target/loom --quiet -- -D warnings
	$(VENV)/bin/ruff check tests python examples docs benches studies release adapters
	$(VENV)/bin/ruff format --check tests python examples docs benches studies release adapters
	$(VENV)/bin/codespell --ignore-words-list clos,conext,strack --skip "*.svg" docs README.md CHANGELOG.md CONTRIBUTING.md
	$(VENV)/bin/python tests/prose.py

# The documentation as a book in target/book; netloom writes the reference of kinds. Not with --quiet, under which MkDocs counts no warnings and is not strict.
book: $(VENV)/installed build
	$(VENV)/bin/mkdocs build

# The picture at the top of the README and the sample output below it, and the pictures of the book.
picture: $(VENV)/installed browser build
	$(VENV)/bin/python docs/picture.py
	$(VENV)/bin/python docs/build/pictures.py

# Long: every study in full, one after the other; fails at the end if a gate of any of them does not hold.
studies: build
	status=0; for study in studies/*/*.toml; do ./target/release/netloom study $$study || status=1; done; exit $$status

# A hundred kills -9 of a study at random moments, and of the processes of one on a Dask cluster: none loses a finished cell.
kill-test: installed
	cargo test --release --workspace --test study_kill -- --ignored --nocapture
	$(VENV)/bin/python tests/dask_kills.py

# Changes the code in a thousand places, one at a time, and asks whether a test of that crate notices: hours. `make mutants CRATES=netloom-transport` for one crate, `MUTANTS="--shard 1/8"` for
# a part, `MUTANTS="--file '**/recovery.rs'"` for a file. What survives is in target/mutants/mutants.out/missed.txt; .cargo/mutants.toml lists what may, and why.
CRATES ?= netloom-transport netloom-routing netloom-fabric
mutants:
	@cargo mutants --version >/dev/null 2>&1 || { echo "make mutants needs cargo-mutants: cargo install cargo-mutants --locked" >&2; exit 1; }
	mkdir -p target/mutants
	cargo mutants --no-shuffle --jobs 1 --output target/mutants $(CRATES:%=--package %) $(MUTANTS)

# The engine alone, packet-hops per second (ratios within one run), then instructions per packet-hop.
bench:
	cargo build --release --workspace --bins
	./target/release/engine
	./target/release/packet-hop
	benches/callgrind.sh ecmp spray flowcut-nic

# What a packet-hop costs from a thousand hosts to 65,536: time, set-up and memory, and with valgrind instructions and cache misses.
bench-scale: installed
	cargo build --release --workspace --bins
	$(VENV)/bin/python benches/scale.py $(if $(shell command -v valgrind),--misses)

# What it takes to set 65,536 hosts up, by topology and scheme of routing.
bench-set-up: installed build
	$(VENV)/bin/python benches/set_up.py

# What large training jobs cost: 2,048 ranks with execution traces, and a step of a mixture of experts in SimAI's format; minutes.
bench-jobs: build
	$(PYTHON) benches/large_job.py
	./target/release/netloom run benches/mixtral-step.toml --threads 1 --set fast=false

# What driven runs cost beside runs of the same flows from a list.
bench-driven: installed library
	$(VENV)/bin/python benches/driven.py
	$(CC) -O2 -Icrates/capi/include benches/driven.c -Ltarget/release -Wl,-rpath,$(CURDIR)/target/release -lnetloom -o target/release/driven
	target/release/driven

# What a packet-hop costs under each scheme, in instructions and as a share of the default's time: needs valgrind.
bench-schemes: installed
	cargo build --release -p netloom
	$(VENV)/bin/python benches/schemes.py --out target/bench-schemes.md

# How much faster threads make runs under each scheme: measured as far as there are cores, and how the work divides among more.
bench-threads: installed
	cargo build --release -p netloom
	$(VENV)/bin/python benches/threads.py --out target/bench-threads.md

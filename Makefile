# Everything that a person, or CI, runs. `make test` is the whole; `make check` is what to run before a commit.

CARGO ?= cargo
# A nightly toolchain: only the fuzzers and miri need one.
NIGHTLY ?= nightly
TARGET = $${CARGO_TARGET_DIR:-target}
# Built with the whole workspace: for one package alone Cargo would build what it shares with others anew.
XTASK = $(CARGO) build --quiet --workspace --bins && $(TARGET)/debug/xtask
# Seconds for each fuzz target in `make test`.
FUZZ_SECONDS ?= 8

.PHONY: check test tested beside soak unit lint tools fuzz miri loom tsan interposer bench docs lab clean

check: lint unit

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(CARGO) clippy -p wattwise-locks --no-default-features --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet
	sh scripts/commit-hygiene.sh

unit:
	$(CARGO) test --workspace --quiet --lib --bins

# Installs what the tests need, saying so; without root it names the command.
tools:
	sh scripts/tools.sh

# What is left of the lab comes last and alone: it wants a quiet host.
test: tools
	@mkdir -p $(TARGET)
	$(MAKE) beside >$(TARGET)/beside.log 2>&1 & beside=$$!; \
	$(MAKE) tested; tested=$$?; \
	wait $$beside; beside=$$?; cat $(TARGET)/beside.log; \
	exit $$((tested + beside))
	sh scripts/first-command.sh
	sh scripts/deny.sh
	$(MAKE) lab CLOCK="--clock host"

tested: lint
	WATTWISE_SEQUENCES=2000 WATTWISE_KILL_EVERY=8 $(CARGO) test --workspace
	$(XTASK) charts --check

# What is built apart from the tests, meanwhile; and those of the lab's scenarios that a busy host does not touch.
beside:
	$(MAKE) fuzz loom miri
	$(CARGO) build --release --quiet
	$(XTASK) lab --clock instructions

fuzz:
	sh scripts/fuzz.sh $(NIGHTLY) $(FUZZ_SECONDS)

# Stock 6.1 kernel in QEMU: our modules and the kernel's own governors (docs/lab.md).
lab:
	$(XTASK) lab $(CLOCK)
	sh scripts/dkms.sh --check "$$(ls -d $(TARGET)/lab/kernel-6.1/usr/src/linux-headers-*-amd64)"

# The locks: every order of memory accesses (1 min), undefined behaviour, data races.
loom:
	sh scripts/locks.sh loom

miri:
	sh scripts/locks.sh miri $(NIGHTLY)

tsan:
	sh scripts/locks.sh tsan $(NIGHTLY)

# What `make test` samples, whole: 10,000 sequences of set, hotplug, fault and restore, a kill at every write of a
# transaction over 64 CPUs, a million windows of the meters; and the locks' storm under the thread sanitizer. Half an hour.
soak: tsan
	WATTWISE_SEQUENCES=10000 WATTWISE_METER_WINDOWS=1000000 $(CARGO) test -p wattwise --lib -- hw::tests meter::
	$(CARGO) test -p wattwise --test hardware killed

# Eleven real programs under the pthread interposer with every lock; some minutes, rewrites the table in docs/locks.md.
interposer:
	bash scripts/interposer-matrix.sh

bench:
	$(CARGO) run --release --quiet -- bench sim

clean:
	$(CARGO) clean

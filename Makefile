# Everything that a person, or CI, runs, in tiers:
#   make check    before a commit: format, lints, unit tests                  4 min from a fresh clone on 2 cores
#   make test     what must be green: installs what it needs, runs all tests  12 min
#   make verify   the long rest: lints, docs, the Python package, fuzzing, loom, miri, licences, the lab   the rest of 45 min
#   make soak     what the others sample, whole; long runs, watched           three hours

CARGO ?= cargo
# A nightly toolchain: only the fuzzers and miri need one.
NIGHTLY ?= nightly
TARGET = $${CARGO_TARGET_DIR:-target}
# What tests are built with: all features, and the shapes of results that only tests look at.
FEATURES = --features wattwise/full,wattwise-live/schema
# The Python module is built and tested by `make python`: its libraries are large.
WITHOUT = --exclude wattwise-python
# What the tests are built of. Scripts that can do with the same programs take them by this: another choice of packages or features
# would compile half of them again.
export TEST_SET = --workspace $(WITHOUT) $(FEATURES)
# Chores and the lab's host, built as the tests are: alone they would be built of libraries with other features, from the ground up.
XTASK = $(CARGO) build $(TEST_SET) --bin xtask --quiet && $(TARGET)/debug/xtask
LAB = $(CARGO) build $(TEST_SET) --bin wattwise-lab --quiet && $(TARGET)/debug/wattwise-lab
# What lints leave out: nothing in `make verify`.
UNLINTED = $(WITHOUT)
# Seconds for each fuzz target in `make verify`.
FUZZ_SECONDS ?= 8
# Seconds of the watched long runs in `make soak`.
SOAK_SECONDS ?= 1800
# Damaged files that `make soak` gives to whole commands.
SOAK_INPUTS ?= 1000000

.PHONY: check test commands commands-a-l commands-m-z parts verify soak unit clippy lint tools fuzz miri loom tsan interposer posix trees bench peers lab lab-instructions python clean

check: clippy unit

clippy:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace $(UNLINTED) --all-targets $(FEATURES) --quiet -- -D warnings
	$(CARGO) clippy -p wattwise-locks --no-default-features --quiet -- -D warnings
	$(XTASK) arrows
	$(XTASK) writers
	$(XTASK) files --check
	sh scripts/commit-hygiene.sh

# The docs with the lints: a link that leads nowhere is an error.
lint: clippy
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace $(UNLINTED) --no-deps $(FEATURES) --quiet

# Long tests are left to `make test`: #[ignore].
unit:
	$(CARGO) test $(TEST_SET) --quiet --lib --bins

# Installs what the tests need, saying so; without root it names the command.
tools:
	sh scripts/tools.sh

# Builds serialise on target/, so everything is built first; then two test jobs run at a time.
test: tools
	$(CARGO) test $(TEST_SET) --no-run --quiet
	$(MAKE) --jobs=2 --output-sync=target commands-m-z commands-a-l parts

# Tests of the commands and of the crates from outside, in two halves by name that take about as long.
commands: commands-m-z commands-a-l

commands-a-l:
	WATTWISE_KILL_EVERY=24 $(CARGO) test $(TEST_SET) --test '[a-l]*' -- --include-ignored

commands-m-z:
	WATTWISE_SEQUENCES=200 $(CARGO) test $(TEST_SET) --test '[m-z]*' -- --include-ignored

# Tests of the parts from inside, the long ones too; examples in the docs; figures that are drawn from data.
parts:
	$(CARGO) test $(TEST_SET) --lib --bins --examples -- --include-ignored
	$(CARGO) test $(TEST_SET) --doc
	$(XTASK) charts --check
	$(TARGET)/debug/examples/studies --check docs/notes/studies.md
	$(XTASK) machines --check

# The lab's guests by the host's clock alone, since they want a quiet host; then two at a time what mostly waits for one CPU.
verify:
	$(MAKE) lint UNLINTED=
	sh scripts/tools.sh verify
	sh scripts/first-command.sh
	$(MAKE) lab CLOCK='--clock host'
	PROFILE=release sh scripts/perfetto.sh
	sh scripts/deny.sh
	$(MAKE) --jobs=2 --output-sync=target python lab-instructions loom fuzz trees miri
	bash scripts/posix-tests.sh --quick
	sh scripts/mutated.sh 3000
	sh scripts/soak.sh 60
	PROFILE=dev sh scripts/package.sh --check
	$(CARGO) test $(TEST_SET) --no-run --quiet
	sh scripts/ppd-clients.sh $(TARGET)/debug
	python3 scripts/prometheus.py $(TARGET)/debug

# The Python package in empty environments of the oldest and the newest Python, with its tests; downloads libraries.
python:
	PROFILE=dev sh scripts/python.sh

fuzz:
	sh scripts/fuzz.sh $(NIGHTLY) $(FUZZ_SECONDS)

# Stock 6.1 kernel in QEMU: our modules and the kernel's own governors (docs/notes/lab.md).
lab:
	$(LAB) $(CLOCK)
	sh scripts/dkms.sh --check "$$(ls -d $(TARGET)/lab/kernel-6.1/usr/src/linux-headers-*-amd64)"

# Of these the guests whose clock follows their instructions: other work beside them changes nothing.
lab-instructions:
	$(LAB) --clock instructions

# The locks: every order of memory accesses (1 min), undefined behaviour, data races.
loom:
	sh scripts/locks.sh loom

miri:
	sh scripts/locks.sh miri $(NIGHTLY)

tsan:
	sh scripts/locks.sh tsan $(NIGHTLY)

# What `make test` samples, whole: 10,000 sequences of set, hotplug, fault and restore, a kill at every write of a
# transaction over 64 CPUs, a million windows of the meters, a million damaged files, ten thousand hostile names for each call; and the locks' storm under the thread sanitizer. Half an hour. Then
# record, run, ab --resume and the interposer under redis and nginx, watched for as long as asked; the rules against two more
# kernels; our modules on a kernel that checks memory, locks and leaks, which is built first.
soak: tsan
	sh scripts/soak.sh $(SOAK_SECONDS)
	WATTWISE_NAMES=10000 $(CARGO) test -p wattwise --features full --test hostile_commands
	WATTWISE_ALL_POINTS=1 WATTWISE_SEQUENCES=10000 WATTWISE_METER_WINDOWS=1000000 $(CARGO) test -p wattwise-control -p wattwise-meter -- --include-ignored
	$(CARGO) test -p wattwise --test hardware killed
	WATTWISE_MACHINES=all $(CARGO) test -p wattwise --features full --test measured_road -- --ignored
	WATTWISE_KILLS=200 WATTWISE_DBUS_INPUTS=50000 $(CARGO) test -p wattwise-daemon --features dbus --test killed --test strangers
	sh scripts/mutated.sh $(SOAK_INPUTS)
	$(LAB) rules --kernel 6.12
	$(LAB) rules --kernel 7.2
	$(LAB) rules vpower burst powerctl --kernel checked

# Others' tests, unchanged, from Debian's source packages: posixtestsuite's and glibc's own of mutexes and condition variables
# under the interposer; hwloc's and util-linux's captured machines through `info`.
posix:
	bash scripts/posix-tests.sh

trees:
	sh scripts/machine-trees.sh

# Eleven real programs under the pthread interposer with every lock; some minutes, rewrites the table in docs/notes/locks.md.
interposer:
	bash scripts/interposer-matrix.sh

bench:
	$(CARGO) run --profile dist --features full --quiet -- bench sim

# The same jobs in SimGrid and SimPy: speeds in turns, and whether all agree (bench/peers). Installs what it needs.
peers:
	sh scripts/peers.sh

clean:
	$(CARGO) clean

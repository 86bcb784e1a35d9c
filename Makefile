# SPDX-License-Identifier: GPL-2.0-only
#
# The commands of the project; `make help` lists them. Every target installs what it
# needs: on a fresh Debian 12 with Rust by rustup, any of them just works.

# Kernels that the module is built for and tested on.
KERNELS ?= 6.1 6.12
# The newest supported kernel, Debian 13's, for `make test-newest`. Its module is built in
# a chroot, which needs root. KERNELS=7.3 works for the other targets as well, except for
# test-packages, test-boot and test-remote.
NEWEST ?= 7.3
# Kernels that look for memory errors, deadlocks and data races: vm/debug-kernel.
DEBUG_KERNELS ?= 6.12-kasan 6.12-lockdep 6.12-kcsan
# Which cases run in virtual machines: quick, more (what .ci/run adds), each (the part of quick
# that .ci/run has on other kernels), full (those not in quick) or all.
TIER ?= quick
# CASES=NAME: instead, the cases with NAME in their names.
CASES ?=
# Seconds for each scenario of the engine's stress test.
STRESS_SECONDS ?= 1
# What `make bench` measures, how many rounds, and loops that use the CPU meanwhile.
FIGURES ?= all
ROUNDS ?= 3
BUSY ?= 0
# What `make bench-workloads` runs, and on what, beside stock swap.
WORKLOADS ?= all
WORKLOAD_SYSTEMS ?= znsage
# `make bench-ssd`: what swaps, how full the swap area is in percent, the accesses, the share
# of a page that compression takes away, how often the area is written over before the
# measurement, and real time for each unit of the drive's; the share of accesses that change
# the page, settings of znsage, such as keep-slots,policy=single, and the guest's kernel.
SYSTEMS ?= stock,discard,virtual,zones
LEVELS ?= 50,70,90
PATTERNS ?= random,zipf
COMPRESSIBLE ?= 0
REWRITES ?= 2
SLOWDOWN ?= 32
WRITE_RATIO ?= 0.5
SETTINGS ?=
KERNEL ?= 6.12
SSD_ROUNDS ?= 1
# `make figures`: full, or quick for smaller devices; where to renew the documents.
SCALE ?= full
DOCS ?=
# `make test-torture`: number of seeds, and the first one.
SEEDS ?= 10000
FIRST ?= 100000
# `make fuzz`: seconds for each target.
SECONDS ?= 60
# `make install` copies files below DESTDIR, to be used below PREFIX.
PREFIX ?= /usr/local
DESTDIR ?=
# DEBUG=1: the module checks the engine's invariants as it runs.
DEBUG ?= 0

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export PATH := $(PATH):$(HOME)/.cargo/bin
export DEBUG
# One target at a time: a build or virtual machines use all CPUs.
.NOTPARALLEL:
.PHONY: help setup kernels kmod upstream bpf tools man completions command install uninstall deb rpm dist test test-all stress checked test-engine test-model test-rust test-figures test-torture test-fuzz test-metrics test-self test-vm test-newest test-debug torture test-cross test-arm64 test-packages test-boot test-hibernation test-remote coverage fuzz try demo figures bench bench-density bench-engine bench-native bench-ssd bench-workloads lab lint clean distclean

SCRIPTS := vm/lib.sh vm/debian.sh vm/devices.sh trace/lib.sh dist/lib.sh tests/debian.sh tests/initramfs/init $(shell grep -lE '^\#!.*(bash|/sh)$$' vm/* dist/* dist/dkms/* dist/debian/* dist/rpm/* .ci/* bench/* fuzz/* tests/* tests/arm64/* trace/* engine/tests/* 2>/dev/null)
ENGINE := $(wildcard engine/*.c port/user/*.c port/user/policy/*.c)
# Example policies, which are kernel modules and libraries as well.
SAMPLES := $(wildcard samples/*.c)
# The engine runs in the kernel and in user space: both compilers check it.
STRICT := -std=gnu11 -O2 -Wall -Wextra -Wno-unused-parameter -Werror -Iengine -Iport/user -Iinclude -fsyntax-only

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: ## install what this machine lacks; virtme-ng goes into build/venv
	@vm/setup

kernels: ## fetch the stock kernels into build/kernels
	@vm/setup vm
	@vm/kernels $(KERNELS)

kmod: ## build the module for all kernels (DEBUG=1: with checks) into build/kmod
	@for kernel in $(KERNELS); do vm/module $$kernel; done

# The newest kernel that the module supports: KERNEL=/path/to/its/source.
upstream: ## lay the module out in the source of a kernel, KERNEL=TREE, and build it there
	dist/upstream '$(KERNEL)'

tools: ## build the command and the tools into target/release
	@vm/setup rust
	cargo build --release --workspace --exclude znsage-model

# What a policy in BPF needs is clang alone.
BPF := $(patsubst %.c,build/bpf/%.o,$(notdir $(wildcard samples/bpf/*.bpf.c tests/bpf/*.bpf.c)))
vpath %.bpf.c samples/bpf tests/bpf

bpf: ## compile the sample policies in BPF into build/bpf
	@vm/setup bpf
	$(MAKE) -s $(BPF)

build/bpf/%.bpf.o: %.bpf.c include/znsage.bpf.h include/znsage.h
	@mkdir -p $(@D)
	clang -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -target bpf -Iinclude -c $< -o $@

man: ## the command's manual pages, into target/man
	@vm/setup rust
	cargo run -q --release -p znsage --example pages -- man target/man

completions: ## its completions for bash, zsh and fish, into target/completions
	@vm/setup rust
	cargo run -q --release -p znsage --example pages -- completions target/completions

command: man completions ## what `make install` copies: the command, manual pages, completions
	cargo build --release -p znsage

# Needs root; docs/install.md.
install: ## install what `make command` built: PREFIX=/usr/local DESTDIR=
	dist/install '$(PREFIX)' '$(DESTDIR)'

uninstall: ## remove what `make install` put there, with the same PREFIX and DESTDIR
	dist/install --remove '$(PREFIX)' '$(DESTDIR)'

deb: command ## Debian packages, znsage and znsage-dkms, into build/deb
	@vm/setup deb
	dist/deb

rpm: command ## RPM packages of the same, for other distributions, into build/rpm
	@vm/setup rpm
	dist/rpm/build

dist: ## the source as an archive, into build/dist
	dist/archive

# tests/README.md says what is in `make test`, and what `make test-all` adds.
test: stress test-rust test-vm ## what proves a change: 20 to 40 minutes on two CPUs

# Takes hours, needs root, fetches Debian.
test-all: TIER := all
test-all: STRESS_SECONDS := 3
test-all: export MINUTES ?= 3
test-all: export TIMES ?= 10
test-all: export ZNSAGE_STEPS ?= 10000000
test-all: export ZNSAGE_RUNS ?= 600
test-all: test test-figures test-torture test-fuzz test-metrics test-self test-cross test-arm64 coverage test-packages test-boot test-hibernation test-remote test-newest test-debug ## all tests there are

stress:
	@vm/setup test
	$(MAKE) -C engine/tests -j "$$(nproc)" programs
	$(MAKE) -C engine/tests SECONDS=$(STRESS_SECONDS)

# One build for tests, simulator and virtual machines: the development profile, in
# target/debug. Always the same packages and targets, because cargo builds dependencies
# again when others ask for other features.
checked:
	@vm/setup test rust
	cargo build --workspace --lib --tests --bin znsage --bin znsage-sim --bin znsage-torture --bin vm-suite

test-rust: checked ## the crates: engine, model checker, simulator, command, parsers
	cargo test --workspace

# Parts of `make test`.
test-engine: stress checked ## the engine: parts, stress under sanitizers, property tests
	cargo test --workspace --test engine

# docs/dev/locking.md says what is checked.
test-model: checked ## the engine's lock-free parts in a model checker
	cargo test --workspace --test model --test kmod --test allocations

test-metrics: checked ## metrics and alert rules, by promtool
	@vm/setup metrics rust
	ZNSAGE_PROMTOOL_NEEDED=1 cargo test --workspace --lib promtool

test-figures: checked ## claims and figures of repro/, without their runs, and the Python package
	@vm/setup figures
	ZNSAGE_SIM=$(CURDIR)/target/debug/znsage-sim build/venv-figures/bin/python -m unittest discover -s repro

# SEEDS=N FIRST=N for other seeds.
test-torture: checked ## the engine under simulated faults, more seeds than in test-rust
	target/debug/znsage-torture --first $(FIRST) --seeds $(SEEDS)

# The same inputs each time, to judge a change; `make fuzz` looks for new ones.
test-fuzz: ## every parser on made-up inputs, five seconds each
	@vm/setup fuzz rust
	FUZZ_SEED=1 fuzz/run 5

comma := ,
space := $(subst ,, )
# vm-suite on all kernels of $(1).
define suite
@$(MAKE) bpf
@for kernel in $(1); do DEBUG=1 vm/module $$kernel; done
tests/run $(subst $(space),$(comma),$(strip $(1))) $(or $(CASES),$(if $(filter all,$(TIER)),,--tier $(TIER)))
endef

# TIER=all for all cases, CASES=NAME for some; tests/README.md. The quick tier is for one kernel.
test-vm: checked ## the module on stock kernels, in virtual machines
	@vm/setup
	$(call suite,$(if $(CASES)$(filter-out quick,$(TIER)),$(KERNELS),$(lastword $(KERNELS))))

test-self: checked ## vm/run, which starts virtual machines: devices, exit statuses, crashes
	DEBUG=1 vm/module $(lastword $(KERNELS))
	vm/selftest $(KERNELS)

# Needs root; fetches a Debian 13.
test-newest: ## test-vm on the newest kernel
	$(MAKE) test-vm KERNELS=$(NEWEST) TIER=all

# test-vm has a minute of it. KERNELS=6.12 SEED=7.
torture: export MINUTES ?= 10
torture: ## everything at once, in virtual machines, for MINUTES=N
	$(MAKE) test-vm CASES=torture::

# Hours, and the kernels are built first. One kernel at a time: they are slow.
test-debug: export SLOWNESS ?= 6
test-debug: checked ## test-vm on kernels that look for memory errors, deadlocks and data races
	@vm/setup
	@status=0; for kernel in $(DEBUG_KERNELS); do \
		DEBUG=1 vm/module $$kernel && tests/run $$kernel $(CASES) || status=1; \
	done; exit $$status

# Fetches Debian's kernels for arm64, and builds one from its source.
test-arm64: KERNELS := 6.12-arm64 6.12-arm64-16k 6.12-arm64-64k
test-arm64: ## swap on arm64 with pages of 4, 16 and 64 KiB, in an emulated machine
	@vm/setup module arm64 cross
	tests/arm64/run $(KERNELS)

# Not run, only compiled. Fetches the kernel's source.
test-cross: CROSS := LLVM=1 KBUILD_MODPOST_WARN=1 W=1 KCFLAGS=-Werror
test-cross: ## the module compiled for arm64 with 64 KiB pages, and for 32 bits, by clang
	@vm/setup module
	vm/module 6.12-arm64-64k ARCH=arm64 $(CROSS)
	vm/module 6.12-i386 ARCH=i386 $(CROSS)
	vm/no-division build/kmod/6.12-i386/znsage.ko

# Needs root; fetches a Debian.
test-packages: deb rpm ## the packages in a Debian 12 of their own: installed, built, removed
	@vm/setup module packages k8s
	@vm/kernels $(KERNELS)
	tests/packages $(KERNELS)

# Needs root; fetches a Debian. KERNELS=6.12 for one kernel.
test-boot: deb ## whole machines with systemd: swap after each start, clean stops, mistakes
	$(call machines,boot)

# KERNELS=7.3 as well. A quarter of an hour for each kernel.
test-hibernation: ## machines that hibernate with swap in use, and resume
	@vm/setup vm module rust
	@for kernel in $(KERNELS); do DEBUG=1 vm/module $$kernel && tests/hibernation $$kernel || exit; done

# One kernel is enough; five minutes.
test-remote: KERNELS := 6.12
test-remote: deb ## swap on another machine's device, with the cable pulled
	$(call machines,remote)

define machines
@vm/setup vm module packages
@vm/kernels $(KERNELS)
cargo build --release -p znsage-tests
@for kernel in $(KERNELS); do tests/machines $(1) $$kernel || exit; done
endef

# build/coverage/missing lists the rest.
coverage: ## how much of the engine its tests execute: at least 98 % of lines, 90 % of branches
	@vm/setup test rust
	engine/tests/coverage

try: ## a first look: swap to a file in a virtual machine, every page verified
	@vm/setup vm module rust
	@DEBUG=0 vm/module 6.12
	cargo build --release -p znsage
	vm/run --cpus 1 --conventional size=512M -- bench/first-look

demo: lab ## stock swap and znsage side by side, on modelled SSDs that collect garbage
	@vm/setup ssd figures
	cargo build --release -p znsage-ssd
	target/release/znsage-lab demo
	build/venv-figures/bin/python bench/demo.py build/demo/result.json build/demo/demo.svg

# SECONDS=N for each target; fuzz/README.md.
fuzz: ## every parser on made-up inputs, for longer
	@vm/setup fuzz rust
	fuzz/run $(SECONDS)

# Interrupted, it goes on; what another build ran is not used. DOCS=docs/dev renews docs/dev/figures.md and its pictures.
figures: ## published figures, simulated, drawn and judged, into build/figures (SCALE=quick: smaller devices)
	@vm/setup figures rust
	cargo build --release -p znsage-sim
	ZNSAGE_SIM=target/release/znsage-sim build/venv-figures/bin/python repro/figures.py \
		--runs build/runs/$$(sha256sum target/release/znsage-sim | cut -c -16) --out build/figures --scale '$(SCALE)' $(if $(DOCS),--docs '$(DOCS)')

# FIGURES=seq,latency ROUNDS=5: bench/README.md. The engine's figures need no kernel.
bench: bench-engine $(if $(filter-out engine%,$(subst $(comma), ,$(FIGURES))),lab) ## measure what docs/dev/results.md claims; KERNELS are for the latency figures
	$(if $(filter all latency%,$(subst $(comma), ,$(FIGURES))),@for kernel in $(KERNELS); do DEBUG=0 vm/module $$kernel; done)
	@[ '$(BUSY)' = 0 ] || vm/setup workloads
	target/release/znsage-lab bench --figures='$(FIGURES)' --rounds='$(ROUNDS)' --busy='$(BUSY)' --kernels='$(KERNELS)'

# WORKLOADS=redis,sort ROUNDS=1: bench/README.md.
bench-workloads: lab ## real programs on znsage, stock swap and others: ETC, Redis, gcc, sort
	@vm/setup workloads figures
	target/release/znsage-lab workloads --workloads='$(WORKLOADS)' --systems='$(WORKLOAD_SYSTEMS)' --rounds='$(ROUNDS)'

# LEVELS=80 PATTERNS=random SLOWDOWN=32: bench/README.md.
bench-ssd: lab ## znsage and stock swap on SSDs that collect garbage, which are modelled
	@vm/setup ssd
	@DEBUG=0 vm/module $(KERNEL)
	cargo build --release -p znsage-ssd
	target/release/znsage-lab ssd --kernel='$(KERNEL)' --systems='$(SYSTEMS)' --levels='$(LEVELS)' --patterns='$(PATTERNS)' \
		--compressible='$(COMPRESSIBLE)' --rewrites='$(REWRITES)' --slowdown='$(SLOWDOWN)' --rounds='$(SSD_ROUNDS)' \
		--write-ratio='$(WRITE_RATIO)' $(if $(SETTINGS),--settings='$(SETTINGS)')

bench-density: lab ## how many idle processes fit, on the same SSDs
	@vm/setup ssd
	cargo build --release -p znsage-ssd
	target/release/znsage-lab density --slowdown='$(SLOWDOWN)'

# Builds a kernel first. ROUNDS=1 FULL=80: bench/README.md.
bench-native: ROUNDS := $(if $(filter file,$(origin ROUNDS)),7,$(ROUNDS))
bench-native: ## the CPU time of a page in module and kernel, which run as a program under perf
	@vm/setup kernel native module rust
	@DEBUG=0 vm/module 7.3-uml ARCH=um
	cargo build --release -p znsage -p znsage-lab
	target/release/znsage-lab native --rounds='$(ROUNDS)' $(if $(FULL),--full='$(FULL)')

bench-engine:
	@vm/setup test rust
	$(MAKE) -C engine/tests bench
	cargo build --release -p znsage-lab

# For demo and bench: the module without checks, for one kernel.
lab:
	@vm/setup
	@DEBUG=0 vm/module 6.12
	cargo build --release -p znsage -p znsage-lab

# Documents in plain English; docs/prose has the rules.
PROSE := $(wildcard README.md */README.md docs/*.md docs/dev/*.md crates/*/README.md crates/znsage-sim/*/README.md crates/znsage-sim/tests/data/README.md)

# For other kernels than 6.12, run the last line by hand; the headers of 7.2 and 7.3 lack
# files that sparse needs.
lint: ## formatting, clippy, shellcheck, prose, strict gcc and clang, layers, W=1, sparse
	@vm/setup test module lint rust
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets -- -D warnings
	shellcheck -x $(SCRIPTS)
	build/vale/vale --config docs/prose/vale.ini $(PROSE)
ifneq ($(ENGINE),)
	for cc in gcc clang; do $$cc $(STRICT) $(ENGINE); done
	$(MAKE) -s -C engine/tests layers
	for cc in gcc clang; do $$cc $(STRICT) -Iinclude $(SAMPLES); done
endif
ifneq ($(wildcard kmod/Kbuild),)
	vm/module 6.12 W=1 KCFLAGS=-Werror C=2 CF=-Wsparse-error
	engine/tests/layers build/kmod/6.12/src/kmod kmod 'trace znsage backend io policy disk device'
endif

clean: ## remove what was built
	rm -rf target build/kmod build/vm

distclean: clean ## remove what was fetched, too
	rm -rf build

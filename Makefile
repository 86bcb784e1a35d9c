# SPDX-License-Identifier: GPL-2.0-only
#
# The commands of the project; `make help` lists them. Every target does its
# own set-up: on a fresh Debian 12 with Rust by rustup, any of them just works.

# Kernels that the module is built for and tested on.
KERNELS ?= 6.1 6.12
# The newest that it is tested on, by `make test-newest`: Debian 13's, for which it is
# built in a Debian 13, and that takes root. KERNELS=7.3 does the rest with it, but
# packages and machines.
NEWEST ?= 7.3
# Of these, where only those cases run that say something of the kernel.
BRIEF ?=
# Those that look for mistakes: vm/debug-kernel.
DEBUG_KERNELS ?= 6.12-kasan 6.12-lockdep 6.12-kcsan
# What `make bench` measures, and how often.
FIGURES ?= all
ROUNDS ?= 3
# What `make bench-workloads` runs.
WORKLOADS ?= all
# Seeds of the torture: how many, and the first.
SEEDS ?= 8000
FIRST ?= 100000
# Of fuzzing: for how long each target.
SECONDS ?= 60
# Where `make install` puts things: below DESTDIR, to be used below PREFIX.
PREFIX ?= /usr/local
DESTDIR ?=
# DEBUG=1: the module checks the engine's invariants as it runs.
DEBUG ?= 0

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export PATH := $(PATH):$(HOME)/.cargo/bin
export DEBUG
# One virtual machine, and one build, has the machine for itself.
.NOTPARALLEL:
.PHONY: help setup kernels kmod tools man completions command install uninstall deb dist test test-engine test-model test-rust test-torture test-fuzz test-report test-vm test-newest test-debug torture test-cross test-packages test-boot test-remote coverage fuzz try demo bench bench-workloads lab lint clean distclean

SCRIPTS := vm/lib.sh vm/debian.sh vm/devices.sh trace/lib.sh dist/lib.sh tests/debian.sh $(shell grep -lE '^\#!.*(bash|/sh)$$' vm/* dist/* dist/dkms/* dist/debian/* .ci/* bench/* fuzz/* tests/* trace/* engine/tests/* 2>/dev/null)
ENGINE := $(wildcard engine/*.c port/user/*.c port/user/policy/*.c)
# Policies of one's own, which are kernel modules and libraries as well.
SAMPLES := $(wildcard samples/*.c)
# The engine is built into the kernel and into user space, so it is held to
# what both compilers can check.
STRICT := -std=gnu11 -O2 -Wall -Wextra -Wno-unused-parameter -Werror -Iengine -Iport/user -Iinclude -fsyntax-only

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

setup: ## install what this machine lacks, virtme-ng into build/venv
	@vm/setup

kernels: ## fetch the stock kernels into build/kernels
	@vm/setup vm
	@vm/kernels $(KERNELS)

kmod: ## build the module for all kernels (DEBUG=1: with checks) into build/kmod
	@for kernel in $(KERNELS); do vm/module $$kernel; done

tools: ## build the command and the tools into target/release
	@vm/setup rust
	cargo build --release --workspace --exclude znsage-model

man: ## the command's manual pages, into target/man
	@vm/setup rust
	cargo run -q -p znsage --example pages -- man target/man

completions: ## its completions for bash, zsh and fish, into target/completions
	@vm/setup rust
	cargo run -q -p znsage --example pages -- completions target/completions

command: man completions ## what `make install` copies: the command, manual pages, completions
	cargo build --release -p znsage

# As root; docs/install.md.
install: ## install what `make command` built: PREFIX=/usr/local DESTDIR=
	dist/install '$(PREFIX)' '$(DESTDIR)'

uninstall: ## remove what `make install` put there, with the same PREFIX and DESTDIR
	dist/install --remove '$(PREFIX)' '$(DESTDIR)'

deb: command ## Debian packages, znsage and znsage-dkms, into build/deb
	@vm/setup deb
	dist/deb

dist: ## the source as an archive, into build/dist
	dist/archive

test: test-engine test-model test-rust test-torture test-fuzz test-vm ## everything that proves it works

test-engine: ## the engine: property tests, parts, stress under sanitizers
	@vm/setup test rust
	$(MAKE) -C engine/tests
	cargo test -p znsage-engine

# docs/locking.md says what is checked.
test-model: ## the engine's lock-free parts in a model checker
	@vm/setup test rust
	nice cargo test -p znsage-model

test-rust: ## the Rust crates' tests
	@vm/setup test rust
	cargo test --workspace --exclude znsage-engine --exclude znsage-model

# Without a browser, test-rust leaves out what needs one.
test-report: ## pages of `znsage report` in a headless Chromium
	@vm/setup browser rust
	ZNSAGE_BROWSER_NEEDED=1 cargo test -p znsage --test report

# SEEDS=N FIRST=N: others than CI's.
test-torture: ## the engine under simulated faults, by seeds
	@vm/setup rust
	cargo build --release -p znsage
	target/release/znsage sim torture --first $(FIRST) --seeds $(SEEDS)

# What is new every time is for `make fuzz`: this is to say whether a change is good.
test-fuzz: ## every parser on made-up inputs, for five seconds each
	@vm/setup fuzz rust
	FUZZ_SEED=1 fuzz/run 5

# The suite on each kernel of $(1).
define suite
@for kernel in $(1); do DEBUG=1 vm/module $$kernel; done
@status=0; for kernel in $(1); do \
	brief=; [[ " $(BRIEF) " != *" $$kernel "* ]] || brief=--brief; \
	echo "vm-suite on $$kernel $$brief"; \
	tests/run $$kernel $$brief $(CASES) || status=1; \
done; exit $$status
endef

# CASES=NAME runs only the cases with that in their names; tests/README.md.
test-vm: tools ## the module on stock kernels, in virtual machines
	@vm/setup
ifeq ($(CASES),)
	vm/selftest $(KERNELS)
endif
	$(call suite,$(KERNELS))

# Not a part of `make test`: as root, it fetches a Debian.
test-newest: ## the same on the newest kernel
	$(MAKE) test-vm KERNELS=$(NEWEST)

# Two minutes of it are a part of test-vm. KERNELS=6.12 SEED=7.
torture: export MINUTES ?= 10
torture: tools ## everything at once, in a virtual machine, MINUTES=N long
	@vm/setup
	$(MAKE) test-vm CASES=torture::

# Not a part of `make test`: it takes hours, and first builds the kernels.
test-debug: export SLOWNESS ?= 6
test-debug: tools ## the same on kernels that look for memory errors, deadlocks and data races
	@vm/setup
	$(call suite,$(DEBUG_KERNELS))

# Compiled, not run: pages of 64 KiB, by clang. It fetches the kernel's source.
test-cross: ## the module compiled for arm64 with 64 KiB pages, by clang
	@vm/setup module
	vm/module 6.12-arm64 ARCH=arm64 LLVM=1 KBUILD_MODPOST_WARN=1 W=1 KCFLAGS=-Werror

# Not a part of `make test`: it fetches a Debian.
test-packages: deb ## the packages in a Debian 12 of their own: installed, built, removed
	@vm/setup module packages
	@vm/kernels $(KERNELS)
	tests/packages $(KERNELS)

# Not a part of `make test`: it fetches a Debian. KERNELS=6.12 for one of them.
test-boot: deb ## whole machines with systemd: swap after each start, clean stops, mistakes
	$(call machines,boot)

# One kernel says it all, and takes some five minutes.
test-remote: KERNELS := 6.12
test-remote: deb ## swap on another machine's device, with the cable pulled
	$(call machines,remote)

define machines
@vm/setup vm module packages
@vm/kernels $(KERNELS)
cargo build --release -p znsage-tests
@for kernel in $(KERNELS); do tests/machines $(1) $$kernel || exit; done
endef

# What is not covered: build/coverage/missing.
coverage: ## how much of the engine its own tests execute; fails below 98 % of lines, 90 % of branches
	@vm/setup test rust
	engine/tests/coverage

try: ## a first look: swap on znsage in a virtual machine, every page verified
	@vm/setup vm module rust
	@DEBUG=0 vm/module 6.12
	cargo build --release -p znsage
	vm/run --cpus 1 --zns size=256M,zone=4M -- bench/first-look

demo: lab ## stock swap and znsage side by side, in one virtual machine
	target/release/znsage-lab demo

# SECONDS=N for each target; fuzz/README.md.
fuzz: ## every parser on made-up inputs, for longer
	@vm/setup fuzz rust
	fuzz/run $(SECONDS)

# FIGURES=seq,waf ROUNDS=5: bench/README.md.
bench: lab ## measure what README.md claims
	target/release/znsage-lab bench --figures='$(FIGURES)' --rounds='$(ROUNDS)'

# WORKLOADS=memcached,redis ROUNDS=1: bench/README.md.
bench-workloads: lab ## real programs on znsage and on stock swap: memcached, Redis, gcc, sort
	@vm/setup workloads
	target/release/znsage-lab workloads --workloads='$(WORKLOADS)' --rounds='$(ROUNDS)'
	target/release/znsage report build/workloads/result.json

# What demo and bench run: a module without checks, for one kernel.
lab:
	@vm/setup
	@DEBUG=0 vm/module 6.12
	cargo build --release -p znsage -p znsage-lab

# Others than 6.12 by hand, as it is done here; the headers of 7.2 and 7.3 lack a part
# of what sparse takes.
lint: ## formatting, clippy, shellcheck, strict gcc and clang, W=1, sparse
	@vm/setup test module rust
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets -- -D warnings
	shellcheck -x $(SCRIPTS)
ifneq ($(ENGINE),)
	for cc in gcc clang; do $$cc $(STRICT) $(ENGINE); done
	for cc in gcc clang; do $$cc $(STRICT) -Iinclude $(SAMPLES); done
endif
ifneq ($(wildcard kmod/Kbuild),)
	vm/module 6.12 W=1 KCFLAGS=-Werror C=2 CF=-Wsparse-error
endif

clean: ## remove what was built
	rm -rf target build/kmod build/vm

distclean: clean ## remove what was fetched, too
	rm -rf build

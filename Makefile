# SPDX-License-Identifier: GPL-2.0-only
#
# The commands of the project; `make help` lists them. Every target does its
# own set-up: on a fresh Debian 12 with Rust by rustup, any of them just works.

# Kernels that the module is built for and tested on.
KERNELS ?= 6.1 6.12
# What `make bench` measures, and how often.
FIGURES ?= all
ROUNDS ?= 3
# Seeds of the torture: how many, and the first.
SEEDS ?= 8000
FIRST ?= 100000
# DEBUG=1: the module checks the engine's invariants as it runs.
DEBUG ?= 0

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export PATH := $(PATH):$(HOME)/.cargo/bin
export DEBUG
# One virtual machine, and one build, has the machine for itself.
.NOTPARALLEL:
.PHONY: help setup kernels kmod tools test test-engine test-rust test-torture test-vm demo bench lab lint clean distclean

SCRIPTS := vm/lib.sh vm/devices.sh $(shell grep -lE '^\#!.*(bash|/sh)$$' vm/* .ci/* bench/* tests/* trace/* 2>/dev/null)
ENGINE := $(wildcard engine/*.c port/user/*.c)
# The engine is built into the kernel and into user space, so it is held to
# what both compilers can check.
STRICT := -std=gnu11 -O2 -Wall -Wextra -Werror -Iengine -Iport/user -fsyntax-only

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
	cargo build --release --workspace

test: test-engine test-rust test-torture test-vm ## everything that proves it works

test-engine: ## the engine: property tests, stress under sanitizers
	@vm/setup test rust
	$(MAKE) -C engine/tests
	cargo test -p znsage-engine

test-rust: ## the Rust crates' tests
	@vm/setup test rust
	cargo test --workspace --exclude znsage-engine

# SEEDS=N FIRST=N: others than CI's.
test-torture: ## the engine under simulated faults, by seeds
	@vm/setup rust
	cargo build --release -p znsage
	target/release/znsage sim torture --first $(FIRST) --seeds $(SEEDS)

# CASES=NAME runs only the cases with that in their names; tests/README.md.
test-vm: tools ## the module on stock kernels, in virtual machines
	@vm/setup
	@for kernel in $(KERNELS); do DEBUG=1 vm/module $$kernel; done
ifeq ($(CASES),)
	vm/selftest $(KERNELS)
endif
	@status=0; for kernel in $(KERNELS); do \
		echo "vm-suite on $$kernel"; \
		tests/run $$kernel $(CASES) || status=1; \
	done; exit $$status

demo: lab ## stock swap and znsage side by side, in one virtual machine
	target/release/znsage-lab demo

# FIGURES=seq,waf ROUNDS=5: bench/README.md.
bench: lab ## measure what README.md claims
	target/release/znsage-lab bench --figures='$(FIGURES)' --rounds='$(ROUNDS)'

# What demo and bench run: a module without checks, for one kernel.
lab:
	@vm/setup
	@DEBUG=0 vm/module 6.12
	cargo build --release -p znsage -p znsage-lab

lint: ## formatting, clippy, shellcheck, strict gcc and clang, sparse
	@vm/setup test module rust
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	shellcheck -x $(SCRIPTS)
ifneq ($(ENGINE),)
	for cc in gcc clang; do $$cc $(STRICT) $(ENGINE); done
endif
ifneq ($(wildcard kmod/Kbuild),)
	vm/module 6.12 C=2 CF=-Wsparse-error
endif

clean: ## remove what was built
	rm -rf target build/kmod build/vm

distclean: clean ## remove what was fetched, too
	rm -rf build

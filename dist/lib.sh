# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # used by those who read this
# Shared by what installs and packs, after vm/lib.sh.

# The one place where the version is.
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$REPO/Cargo.toml")
[[ $VERSION =~ ^[0-9]+(\.[0-9]+)+$ ]] || die "Cargo.toml has no version that would do: '$VERSION'"
# All packages, and what is in them, are as old as the commit, so that the same
# source gives the same package.
: "${SOURCE_DATE_EPOCH:=$(git -C "$REPO" log -1 --format=%ct 2> /dev/null || date +%s)}"
export SOURCE_DATE_EPOCH

# Where `make command` leaves what is installed.
TARGET=$REPO/target
BINARY=${CARGO_TARGET_DIR:-$TARGET}/release/znsage

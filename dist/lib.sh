# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # used by the scripts that source this
# Shared by the scripts that install and pack; sourced after vm/lib.sh.

# Cargo.toml is the only place that has the version.
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$REPO/Cargo.toml")
[[ $VERSION =~ ^[0-9]+(\.[0-9]+)+$ ]] || die "Cargo.toml has no valid version: '$VERSION'"
# Packages and their files get the commit's time, so the same source gives the
# same package.
: "${SOURCE_DATE_EPOCH:=$(git -C "$REPO" log -1 --format=%ct 2> /dev/null || date +%s)}"
export SOURCE_DATE_EPOCH

# Where `make command` builds what is installed.
TARGET=$REPO/target
BINARY=${CARGO_TARGET_DIR:-$TARGET}/release/znsage

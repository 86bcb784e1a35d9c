# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # used by those who read this
# Shared by the scripts in vm/: paths and messages.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
BUILD=$REPO/build
# The kernels that `vm/kernels` can fetch.
KERNELS=(6.1 6.12 7.2 7.3)
# The kernels that `vm/debug-kernel` builds.
DEBUG_KERNELS=(6.12-kasan 6.12-lockdep 6.12-kcsan)

ME=${0##*/}

say() {
	printf '%s: %s\n' "$ME" "$*" >&2
}

die() {
	say "$@"
	exit 1
}

# Runs a command; shows its output only when it fails.
quietly() {
	local log status=0
	log=$(mktemp)
	"$@" > "$log" 2>&1 || status=$?
	((status == 0)) || sed 's/^/    /' "$log" >&2
	rm -f "$log"
	return "$status"
}

# Takes a lock for the rest of the process, so that two makes do not fetch or unpack the
# same thing at once. The file descriptor stays open on purpose.
lock() {
	mkdir -p "$(dirname "$1")"
	exec {LOCK_FD}> "$1"
	flock "$LOCK_FD"
}

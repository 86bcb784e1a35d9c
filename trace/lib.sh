# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Shared by the scripts that watch a znsage device.

die() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# Sets `disk` to N of /dev/znsageN: the given device, or the only one.
find_disk() {
	local name=${1#/dev/} there
	if [[ -z $name ]]; then
		there=$(find /sys/block -maxdepth 1 -name 'znsage*' -printf '%f\n')
		[[ -n $there ]] || die "no znsage device is on"
		[[ $there != *$'\n'* ]] || die "name one of these devices: ${there//$'\n'/ }"
		name=$there
	fi
	[[ $name =~ ^znsage[0-9]+$ && -d /sys/block/$name/znsage ]] || die "$1 is not a znsage device that is on"
	# shellcheck disable=SC2034 # used by the scripts that source this
	disk=${name#znsage}
}

# Runs a bpftrace program until Ctrl-C, or for some seconds (0: no limit), counted
# from when its probes are attached.
run_bpftrace() {
	local seconds=$1 program=$2 status=0
	local limit=
	[[ $seconds =~ ^[0-9]+$ ]] || die "'$seconds' is not a number of seconds"
	((EUID == 0)) || die "only root may trace the kernel"
	command -v bpftrace > /dev/null || die "bpftrace is missing (apt-get install bpftrace)"
	mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing
	((seconds == 0)) || limit="interval:s:$seconds { exit(); }"
	# Ctrl-C ends bpftrace, which then prints its results.
	trap : INT
	# Room for all slots being read.
	export BPFTRACE_MAP_KEYS_MAX=65536
	bpftrace -q --no-warnings -B line -e "$program $limit" || status=$?
	((status == 0 || status == 130)) || die "bpftrace failed ($status)"
}

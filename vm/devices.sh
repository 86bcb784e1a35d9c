# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Turns `size=1G,zone=4M,...` into an image file and QEMU's arguments.

# Bytes of a size such as 4096, 64M, 1G; fails for anything else.
bytes() {
	[[ $1 =~ ^[0-9]+[KMGTkmgt]?$ ]] && numfmt --from=iec "${1^^}" 2> /dev/null
}

# Sum of the sizes in the given specs, in bytes.
total_size() {
	local spec size total=0
	for spec in "$@"; do
		size=512M
		[[ ,$spec, =~ ,size=([^,]*), ]] && size=${BASH_REMATCH[1]}
		total=$((total + $(bytes "$size" || echo 0)))
	done
	echo "$total"
}

# device_arguments KIND INDEX SPEC DIRECTORY: prints one argument a line.
device_arguments() {
	local kind=$1 id=$1$2 spec=$3 image=$4/$1$2.img blocks
	local -A key=([size]=512M [lba]=4096 [metadata]=0)
	[[ $kind != zns ]] || key+=([zone]=4M [capacity]='' [open]=0 [active]=0)
	read_spec "$kind" "$spec" || return
	check_spec "$kind" "$spec" || return

	# The image includes the metadata of blocks. It is allocated now and stays so when zones
	# are reset; otherwise benchmarks would measure how fast this machine allocates memory
	# for it.
	blocks=$((key[size] / key[lba]))
	fallocate -l $((blocks * (key[lba] + key[metadata]))) "$image" || return
	printf '%s\n' -drive "if=none,id=$id,file=$image,format=raw,cache=unsafe,discard=ignore"
	printf '%s\n' -device "nvme,id=nvme-$id,serial=${id^^}"
	printf '%s\n' -device "nvme-ns,bus=nvme-$id,drive=$id,nsid=1$(namespace_properties "$kind")"
}

# Fills `key` of the caller from the spec, sizes in bytes.
read_spec() {
	local kind=$1 spec=$2 pair name value
	local IFS=,
	for pair in $spec; do
		name=${pair%%=*}
		[[ $pair == *=* && -n $name && -v key[$name] ]] ||
			bad_device "$kind" "$spec" "'$pair' is not one of ${!key[*]}=VALUE" || return
		key[$name]=${pair#*=}
	done
	[[ $kind != zns ]] || : "${key[capacity]:=${key[zone]}}"
	for name in "${!key[@]}"; do
		value=$(bytes "${key[$name]}") ||
			bad_device "$kind" "$spec" "$name '${key[$name]}' is not a number or size" || return
		key[$name]=$value
	done
}

check_spec() {
	local kind=$1 spec=$2
	((key[lba] == 512 || key[lba] == 4096)) || bad_device "$kind" "$spec" "lba must be 512 or 4096" || return
	((key[size] > 0 && key[size] % key[lba] == 0)) || bad_device "$kind" "$spec" "size must be a multiple of lba" || return
	[[ $kind == zns ]] || return 0
	((key[zone] > 0 && key[zone] % key[lba] == 0)) || bad_device "$kind" "$spec" "zone must be a multiple of lba" || return
	((key[size] >= key[zone])) || bad_device "$kind" "$spec" "size is less than one zone" || return
	((key[capacity] > 0 && key[capacity] <= key[zone] && key[capacity] % key[lba] == 0)) ||
		bad_device "$kind" "$spec" "capacity must be at most zone, and a multiple of lba" || return
	((key[active] == 0 || key[open] <= key[active])) || bad_device "$kind" "$spec" "open is more than active" || return
}

bad_device() {
	local option=--zns
	[[ $1 == zns ]] || option=--conventional
	say "$option $2: $3"
	return 1
}

namespace_properties() {
	printf ',logical_block_size=%s,physical_block_size=%s' "${key[lba]}" 4096
	((key[metadata] == 0)) || printf ',ms=%s' "${key[metadata]}"
	[[ $1 == zns ]] || return 0
	printf ',zoned=true,zoned.zone_size=%s,zoned.zone_capacity=%s,zoned.max_open=%s,zoned.max_active=%s' \
		"${key[zone]}" "${key[capacity]}" "${key[open]}" "${key[active]}"
}

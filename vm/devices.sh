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

# device_arguments KIND INDEX SPEC DIRECTORY COUNTERS PLUGIN: prints one argument a line.
# Images and sockets come into DIRECTORY, and the counters of modelled drives into COUNTERS,
# which the guest sees. PLUGIN makes those drives.
device_arguments() {
	local kind=$1 id=$1$2 spec=$3 image=$4/$1$2.img blocks
	local -A key=([size]=512M [lba]=4096 [metadata]=0 [model]='' [slowdown]=1)
	if [[ $kind == zns ]]; then
		key+=([zone]=4M [capacity]='' [open]=0 [active]=0)
	else
		key+=([superblock]=0 [fdp]=0 [unit]=16M)
	fi
	read_spec "$kind" "$spec" || return
	check_spec "$kind" "$spec" || return

	if [[ -n ${key[model]} ]]; then
		modelled_medium "$kind" "$id" "$4" "$5" "$6" || return
	else
		image_medium "$id" "$image" || return
	fi
	local subsystem=
	if ((${key[fdp]:-0} > 0)); then
		printf '%s\n' -device "nvme-subsys,id=subsys-$id,fdp=on,fdp.nruh=${key[fdp]},fdp.runs=${key[unit]}"
		subsystem=,subsys=subsys-$id
	fi
	printf '%s\n' -device "nvme,id=nvme-$id,serial=${id^^}$subsystem"
	printf '%s\n' -device "nvme-ns,bus=nvme-$id,drive=$id,nsid=1$(namespace_properties "$kind")"
}

image_medium() {
	local id=$1 image=$2 blocks
	# The image includes the metadata of blocks. It is allocated now and stays so when zones
	# are reset; otherwise benchmarks would measure how fast this machine allocates memory
	# for it.
	blocks=$((key[size] / key[lba]))
	fallocate -l $((blocks * (key[lba] + key[metadata]))) "$image" || return
	printf '%s\n' -drive "if=none,id=$id,file=$image,format=raw,cache=unsafe,discard=ignore"
}

# Starts an SSD of the simulator behind a socket; stop_models ends it. QEMU keeps the states
# and limits of zones. A reset takes as long for each byte as one of the drive's own zones,
# which are larger.
modelled_medium() {
	local kind=$1 id=$2 directory=$3 counters=$4 plugin=$5 set=()
	[[ -e $plugin ]] || {
		say "model=${key[model]}: $plugin is not built; run 'make tools'"
		return 1
	}
	# Otherwise superblocks would shrink with the drive, below the kernel's swap clusters.
	((${key[superblock]:-0} == 0)) || set=(set="conventional.superblock=${key[superblock]}"
		set="conventional.flash=$(flash_of "${key[size]}")")
	[[ $kind != zns ]] || set=(set="zoned.zone_size=${key[zone]}" set="zoned.zone_capacity=${key[capacity]}"
		set=zoned.max_open=0 set=zoned.max_active=0 set='zoned.reset_us=[[0, 100], [1, 100]]')
	"$REPO/vm/setup" ssd >&2 || return
	nbdkit --unix "$directory/$id.sock" --pidfile "$directory/$id.pid" --threads 64 "$plugin" \
		device="${key[model]}" size="${key[size]}" slowdown="${key[slowdown]}" \
		counters="$counters/$id.json" hurry="$counters/$id.hurry" "${set[@]}" >&2 || return
	printf '%s\n' -drive "if=none,id=$id,file=nbd+unix:///?socket=$directory/$id.sock,format=raw,cache=unsafe,discard=unmap"
}

# A drive has 7 % more flash than it shows, in whole pages.
flash_of() {
	local flash=$(($1 * 107 / 100))
	echo $((flash - flash % 4096))
}

stop_models() {
	local pid
	for pid in "$1"/*.pid; do
		[[ ! -e $pid ]] || kill "$(< "$pid")" 2> /dev/null || true
	done
	rm -f "$1"/*.pid "$1"/*.sock
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
		[[ $name != model ]] || continue
		value=$(bytes "${key[$name]}") ||
			bad_device "$kind" "$spec" "$name '${key[$name]}' is not a number or size" || return
		key[$name]=$value
	done
}

check_spec() {
	local kind=$1 spec=$2
	((key[lba] == 512 || key[lba] == 4096)) || bad_device "$kind" "$spec" "lba must be 512 or 4096" || return
	((key[size] > 0 && key[size] % key[lba] == 0)) || bad_device "$kind" "$spec" "size must be a multiple of lba" || return
	((key[slowdown] > 0)) || bad_device "$kind" "$spec" "slowdown must be at least 1" || return
	[[ -z ${key[model]} ]] || ((key[lba] == 4096 && key[metadata] == 0)) ||
		bad_device "$kind" "$spec" "a model has blocks of 4096 bytes and no metadata" || return
	((${key[fdp]:-0} <= 128)) || bad_device "$kind" "$spec" "fdp must be at most 128" || return
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
	((${key[fdp]:-0} == 0)) || printf ',fdp.ruhs=0-%s' $((key[fdp] - 1))
	[[ $1 == zns ]] || return 0
	printf ',zoned=true,zoned.zone_size=%s,zoned.zone_capacity=%s,zoned.max_open=%s,zoned.max_active=%s' \
		"${key[zone]}" "${key[capacity]}" "${key[open]}" "${key[active]}"
}

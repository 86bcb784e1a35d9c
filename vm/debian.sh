# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2153 # set by those who read this
# A Debian of its own, entered by chroot: fetched once as an archive,
# $DEBIAN_TAR, unpacked below $ROOT as often as one likes. What it is, $DEBIAN
# says (bookworm), and what is in it beside the least, $DEBIAN_INCLUDE. After
# vm/lib.sh and vm/apt.sh. Root only; nothing is installed on this machine.

# The name tells mmdebstrap that it is to be an archive.
fetch_debian() {
	local archive
	[[ ! -e $DEBIAN_TAR || $(cat "$DEBIAN_TAR.include") != "$DEBIAN_INCLUDE" ]] || return 0
	mkdir -p "${DEBIAN_TAR%/*}"
	rm -f "$DEBIAN_TAR"
	say "fetching a Debian $DEBIAN"
	# Who has this machine's release has the others, too.
	for archive in $(configured_archives "$RELEASE"); do
		if quietly mmdebstrap --variant=minbase --include="$DEBIAN_INCLUDE" "$DEBIAN" \
			"${DEBIAN_TAR%.tar}.new.tar" "$archive"; then
			echo "$DEBIAN_INCLUDE" > "$DEBIAN_TAR.include"
			mv "${DEBIAN_TAR%.tar}.new.tar" "$DEBIAN_TAR"
			return
		fi
	done
	die "cannot fetch Debian $DEBIAN; check the network and this machine's apt sources"
}

# As it was fetched, whatever was done to it before.
unpack_debian() {
	rm -rf --one-file-system "$ROOT"
	mkdir -p "$ROOT"
	tar -C "$ROOT" --numeric-owner -xpf "$DEBIAN_TAR"
}

# Runs a command in that Debian, with mounts that end with it, however it
# ends: they are in a namespace of its own. The directories of $SHARED are
# there, too, under the same path.
inside() {
	# shellcheck disable=SC2016 # for the shell in there
	unshare --mount --pid --fork --kill-child -- sh -euc '
		root=$1
		shared=$2
		shift 2
		mount -t proc proc "$root/proc"
		mount --bind /dev "$root/dev"
		for dir in $shared; do
			mkdir -p "$root$dir"
			mount --bind "$dir" "$root$dir"
		done
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
	' - "$ROOT" "${SHARED:-}" "$@"
}

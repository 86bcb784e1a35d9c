# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2153 # set by those who read this
# A Debian in a chroot: fetched once as an archive, $DEBIAN_TAR, and unpacked below $ROOT.
# $DEBIAN is its release (bookworm), $DEBIAN_INCLUDE lists additional packages. After
# vm/lib.sh and vm/apt.sh. For root only; installs nothing on this machine.

# The suffix makes mmdebstrap write an archive.
fetch_debian() {
	local archive
	[[ ! -e $DEBIAN_TAR || $(cat "$DEBIAN_TAR.include") != "$DEBIAN_INCLUDE" ]] || return 0
	mkdir -p "${DEBIAN_TAR%/*}"
	rm -f "$DEBIAN_TAR"
	say "fetching a Debian $DEBIAN"
	# An archive of this machine's release has the other releases, too.
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

# Unpacks it again, which discards all changes.
unpack_debian() {
	rm -rf --one-file-system "$ROOT"
	mkdir -p "$ROOT"
	tar -C "$ROOT" --numeric-owner -xpf "$DEBIAN_TAR"
}

# Runs a command in that Debian. Its mounts are in a namespace of their own, which ends with
# the command. The directories of $SHARED are available under the same paths.
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

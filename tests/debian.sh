# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2153 # used by those who read this, and theirs
# A Debian of its own for tests, below $ROOT: fetched once, unpacked as often as
# one likes, entered by chroot. For tests/packages and tests/machines, after
# vm/lib.sh and vm/apt.sh. Root only; nothing is installed on this machine.

# What the packages depend on and DKMS builds with; what makes it a machine
# that starts; what the tests of such machines talk to and work with.
DEBIAN_INCLUDE=dkms,kmod,gcc-12,libc6-dev,libelf1,make,xz-utils
DEBIAN_INCLUDE+=,systemd,systemd-sysv,udev,iproute2,nvme-cli,qemu-guest-agent
DEBIAN_TAR=$BUILD/debian/debian.tar

release_of() {
	basename "$BUILD/kernels/$1/lib/modules"/*
}

# The name tells mmdebstrap that it is to be an archive.
fetch_debian() {
	local archive
	[[ ! -e $DEBIAN_TAR || $(cat "$DEBIAN_TAR.include") != "$DEBIAN_INCLUDE" ]] || return 0
	mkdir -p "${DEBIAN_TAR%/*}"
	rm -f "$DEBIAN_TAR"
	say "fetching a Debian $RELEASE"
	for archive in $(configured_archives "$RELEASE"); do
		if quietly mmdebstrap --variant=minbase --include="$DEBIAN_INCLUDE" "$RELEASE" \
			"${DEBIAN_TAR%.tar}.new.tar" "$archive"; then
			echo "$DEBIAN_INCLUDE" > "$DEBIAN_TAR.include"
			mv "${DEBIAN_TAR%.tar}.new.tar" "$DEBIAN_TAR"
			return
		fi
	done
	die "cannot fetch Debian $RELEASE; check the network and this machine's apt sources"
}

# As it was fetched, whatever was done to it before.
unpack_debian() {
	rm -rf --one-file-system "$ROOT"
	mkdir -p "$ROOT"
	tar -C "$ROOT" --numeric-owner -xpf "$DEBIAN_TAR"
}

# Runs a command in that Debian, with mounts that end with it.
inside() {
	# shellcheck disable=SC2016 # for the shell in there
	unshare --mount --pid --fork --kill-child -- sh -euc '
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount --bind /dev "$root/dev"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
	' - "$ROOT" "$@"
}

# The headers of a kernel, and of its modules nothing but their place.
add_headers() {
	local from=$BUILD/kernels/$1 release to
	release=$(release_of "$1")
	to=$ROOT/usr/lib/modules/$release
	mkdir -p "$to" "$ROOT/usr/src"
	cp -a "$from/usr/src/." "$ROOT/usr/src"
	cp -a "$from"/usr/lib/linux-kbuild-* "$ROOT/usr/lib"
	cp "$from/lib/modules/$release"/modules.{builtin,builtin.modinfo,order} "$to"
	ln -s "/usr/src/linux-headers-$release" "$to/build"
	rm "$ROOT/usr/src/headers"
	inside depmod "$release"
}

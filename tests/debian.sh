# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2153 # used by those who read this, and theirs
# The contents of the Debian (vm/debian.sh) for tests/packages and tests/machines. After
# vm/lib.sh and vm/apt.sh.

. "$REPO/vm/debian.sh"

DEBIAN=$RELEASE
# Dependencies of the packages and build tools for DKMS; a bootable system; tools that the
# tests use in such machines.
DEBIAN_INCLUDE=dkms,kmod,gcc-12,libc6-dev,libelf1,make,xz-utils
DEBIAN_INCLUDE+=,systemd,systemd-sysv,udev,iproute2,nvme-cli,qemu-guest-agent
DEBIAN_TAR=$BUILD/debian/debian.tar

release_of() {
	basename "$BUILD/kernels/$1/lib/modules"/*
}

# Kernels for another Debian do not match the programs of this one, and DKMS cannot build
# for them here.
check_kernels() {
	local kernel
	for kernel; do
		[[ $(debian_of "$kernel") == "$DEBIAN" ]] ||
			die "kernel $kernel is for Debian $(debian_of "$kernel"); this is a test of Debian $DEBIAN"
	done
}

# The headers of a kernel, and an empty directory for its modules.
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

# SPDX-License-Identifier: GPL-2.0-only
"""Runs virtme-ng's virtme-run with a root file system that is made for tests.

virtme-ng mounts the host's root read-only by 9p without any cache, and lets
udev apply all rules of the host: every program start then costs 50 ms, and the
boot 13 s. The host's files do not change under a test, so here they are cached,
and below an overlay in memory, which makes the whole tree writable in the guest
without touching the host. Of udev, only loading drivers and naming the ports
that carry the command's output are left.
"""

import sys

from virtme import mkinitramfs, virtmods
from virtme.commands import run

# A shell script for busybox in virtme-ng's initramfs. virtme-ng formats it: {{ is {.
MOUNT_ROOT = r"""
log 'mounting the root file system'
mount -n -t tmpfs run_virtme /run_virtme
mkdir -p /run_virtme/lower /run_virtme/upper /run_virtme/work
if ! /bin/mount -n -t 9p -o {access},version=9p2000.L,trans=virtio,access=any,msize=524288,cache=loose /dev/root /run_virtme/lower; then
  echo "cannot mount the host's root by 9p"
  sleep 1
  exit 1
fi
if ! /bin/mount -n -t overlay -o lowerdir=/run_virtme/lower,upperdir=/run_virtme/upper,workdir=/run_virtme/work,xino=off overlay /newroot; then
  echo "cannot put an overlay on the root"
  sleep 1
  exit 1
fi
mkdir -p /newroot/lib/modules /newroot/etc/udev/rules.d
for rules in /newroot/usr/lib/udev/rules.d /newroot/lib/udev/rules.d /newroot/etc/udev/rules.d; do
  [ -d $rules ] && mount -n -t tmpfs rules $rules
done
cat > /newroot/etc/udev/rules.d/50-guest.rules <<'RULES'
SUBSYSTEM=="virtio-ports", ATTR{{name}}=="?*", SYMLINK+="virtio-ports/$attr{{name}}"
RULES
"""


def main() -> int:
    # pylint: disable=protected-access
    if not hasattr(mkinitramfs, "_MOUNT_ROOT_HOST"):
        sys.exit("vm/boot.py: this virtme-ng is not the version that vm/requirements.txt names")
    mkinitramfs._MOUNT_ROOT_HOST = MOUNT_ROOT
    virtmods.MODALIASES.append("overlay")
    return run.main()


if __name__ == "__main__":
    sys.exit(main())

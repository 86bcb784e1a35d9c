// SPDX-License-Identifier: GPL-2.0-only
//! A swap file of znsage.conf, on a file system that programs write to while the power fails.

use znsage_guest::outcome::Outcome;

use crate::boot::none_failed;
use crate::machine::Machine;
use crate::story::Story;

pub const DISK: &str = "DATA";
pub const DISK_MIB: u64 = 256;

/// Makes a file system in which every other file is removed, so that the swap file is in pieces.
const MAKE: &str = "set -e; disk=/dev/disk/by-id/virtio-DATA; mkfs.ext4 -q $disk
    echo \"$disk /data ext4 defaults 0 0\" >> /etc/fstab; mkdir /data; mount /data
    for i in $(seq 24); do head -c 4M /dev/urandom > /data/$i; done
    rm /data/*[02468]; sha256sum /data/[0-9]* > /data/sums; mkdir -p /etc/znsage.conf.d
    printf '[file]\\ndevice = /data/swap\\nsize = 96M\\npriority = 20\\n' > /etc/znsage.conf.d/file.conf
    sync; systemctl daemon-reload; systemctl start znsage@file.service";
/// Programs that swap, and write files, until the power fails.
const PROGRAMS: &str =
    "systemd-run --unit=bench znsage bench --size 96M --memory-limit 32M --seconds 900 &&
    systemd-run --unit=writer sh -c 'while :; do for i in $(seq 20); do
    head -c 300K /dev/urandom > /data/new; mv /data/new /data/w$i; done; done'";
/// All places of the files have been written, and more pages than `hold` has are swapped out.
const BUSY: &str =
    "test -e /data/w20 && area=$(sed -n '/\\t20$/s,^/dev/\\([^ ]*\\).*,\\1,p' /proc/swaps) &&
    test $(cat /sys/block/$area/znsage/host_blocks) -gt 22000";
const BOTH_ON: &str =
    "grep -q '^/dev/znsage.*\t20$' /proc/swaps && grep -q '^/dev/znsage.*\t10$' /proc/swaps";
const SUMS: &str = "sha256sum -c /data/sums | wc -l; sha256sum --status -c /data/sums";
const SOUND: &str = "set -e; systemctl stop znsage@file.service; umount /data
    e2fsck -fn /dev/disk/by-id/virtio-DATA > /run/fsck 2>&1 || { cat /run/fsck; exit 1; }
    rm /etc/znsage.conf.d/file.conf; sed -i '/DATA/d' /etc/fstab; systemctl daemon-reload";

/// The power fails while the file and others are written. The next start replays the journal, and
/// takes the file and the zoned device again.
pub fn power_failure(story: &mut Story, machine: &mut Machine) -> Outcome {
    story.check("a swap file is made and turned on", machine.ok(MAKE));
    story.check("swap in use", machine.hold("hold", 64));
    machine.ok(PROGRAMS)?;
    story.check("swap and files are written", machine.comes(BUSY, 180));
    story.tell("power failure");
    machine.power_cut()?;
    story.check("third start", machine.up());
    story.check("no unit has failed", none_failed(machine));
    story
        .check("the journal was replayed", machine.ok("dmesg | grep -o 'vdc): recovery complete'"));
    story.check("both areas are on again", machine.ok(BOTH_ON).map(drop));
    story.check("other files are right", machine.ok(SUMS));
    story.check("swap in use", machine.hold("hold", 64));
    story.check("its pages are right", machine.read_held("hold"));
    story.check("other files are still right", machine.ok(SUMS));
    story.check("the file system is sound", machine.ok(SOUND));
    Ok(())
}

// SPDX-License-Identifier: GPL-2.0-only
//! A device that is exported and connected by NVMe over TCP on the loopback interface.
//! docs/dev/remote.md does the same with two machines.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use znsage_guest::null_blk::NullBlk;

use super::program::{call, eventually, set};
use crate::result::{Context, Result};

const TARGET: &str = "/sys/kernel/config/nvmet";
const NAME: &str = "latency";
const ADDRESS: &str = "127.0.0.1";
const SERVICE: &str = "4420";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Disconnected when dropped, and its parts removed in this order.
pub struct NvmeTcp {
    node: String,
    _connection: Connection,
    _export: Export,
    _device: NullBlk,
}

impl NvmeTcp {
    pub fn new(device: NullBlk) -> Result<NvmeTcp> {
        for module in ["nvmet-tcp", "nvme-tcp"] {
            call("modprobe", &[module])?;
        }
        call("busybox", &["ip", "link", "set", "lo", "up"])?;
        let export = Export::new(&device.node())?;
        let connection = Connection::new()?;
        let node = eventually(TIMEOUT, node).ok_or("NVMe/TCP makes no disk")?;
        Ok(NvmeTcp { node, _connection: connection, _export: export, _device: device })
    }

    pub fn node(&self) -> &str {
        &self.node
    }
}

/// The disk is found by its serial number. A path to it has the same, but no node.
fn node() -> Option<String> {
    let names = fs::read_dir("/sys/block").ok()?.flatten();
    names.map(|entry| entry.path()).find_map(|path| {
        let serial = fs::read_to_string(path.join("device/serial")).ok()?;
        let node = Path::new("/dev").join(path.file_name()?);
        (serial.trim() == NAME && node.exists()).then(|| node.display().to_string())
    })
}

/// The target's side.
struct Export {
    /// In the order of their creation.
    directories: Vec<PathBuf>,
    link: PathBuf,
}

impl Export {
    fn new(device: &str) -> Result<Export> {
        let subsystem = Path::new(TARGET).join("subsystems").join(NAME);
        let port = Path::new(TARGET).join("ports/1");
        let link = port.join("subsystems").join(NAME);
        let mut export = Export { directories: Vec::new(), link };
        let space = subsystem.join("namespaces/1");
        export.make(&subsystem, &[("attr_allow_any_host", "1"), ("attr_serial", NAME)])?;
        export.make(&space, &[("device_path", device), ("enable", "1")])?;
        let address = [
            ("addr_trtype", "tcp"),
            ("addr_adrfam", "ipv4"),
            ("addr_traddr", ADDRESS),
            ("addr_trsvcid", SERVICE),
        ];
        export.make(&port, &address)?;
        std::os::unix::fs::symlink(&subsystem, &export.link).context(export.link.display())?;
        Ok(export)
    }

    fn make(&mut self, directory: &Path, settings: &[(&str, &str)]) -> Result<()> {
        fs::create_dir(directory).context(directory.display())?;
        self.directories.push(directory.to_path_buf());
        for (attribute, value) in settings {
            set(&directory.join(attribute).display().to_string(), value)?;
        }
        Ok(())
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.link);
        for directory in self.directories.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// The host's side: the controller in sysfs.
struct Connection {
    controller: String,
}

impl Connection {
    /// Does what `nvme connect` does; the guest may lack nvme-cli.
    fn new() -> Result<Connection> {
        const FABRICS: &str = "/dev/nvme-fabrics";
        let mut file = fs::File::options().read(true).write(true).open(FABRICS).context(FABRICS)?;
        let options = format!("transport=tcp,traddr={ADDRESS},trsvcid={SERVICE},nqn={NAME}");
        file.write_all(options.as_bytes()).context(format_args!("cannot connect: {options}"))?;
        let mut answer = String::new();
        file.read_to_string(&mut answer).context(FABRICS)?;
        let instance = instance(&answer).ok_or_else(|| format!("{FABRICS}: {answer}"))?;
        Ok(Connection { controller: format!("/sys/class/nvme/nvme{instance}") })
    }
}

/// 2 of `instance=2,cntlid=1`.
fn instance(answer: &str) -> Option<u32> {
    answer.trim().split(',').find_map(|part| part.strip_prefix("instance=")?.parse().ok())
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = set(&format!("{}/delete_controller", self.controller), "1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_the_controller_is_found() {
        assert_eq!(instance("instance=2,cntlid=1\n"), Some(2));
        assert_eq!(instance("cntlid=1"), None);
    }
}

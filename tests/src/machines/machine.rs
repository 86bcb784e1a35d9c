// SPDX-License-Identifier: GPL-2.0-only
//! A machine in QEMU: its devices, commands in it, start and stop.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use znsage_guest::guest::slowness;
use znsage_guest::outcome::{Context, Outcome};

use crate::agent::{Agent, Ran};
use crate::hold;
use crate::qmp::Monitor;

/// The files that all machines share.
#[derive(clap::Args)]
pub struct Parts {
    /// The kernel, a vmlinuz
    #[arg(long)]
    kernel: PathBuf,
    /// The initial RAM disk
    #[arg(long)]
    initrd: PathBuf,
    /// The image of its disk, which is not changed
    #[arg(long)]
    disk: PathBuf,
    /// Directory for consoles and sockets
    #[arg(long)]
    files: PathBuf,
}

impl Parts {
    pub fn file(&self, name: &str) -> PathBuf {
        self.files.join(name)
    }
}

/// A time limit, scaled for a slow machine.
pub fn seconds(n: u64) -> Duration {
    Duration::from_secs(n) * slowness()
}

/// From power-on to the guest agent.
const START: u64 = 180;
/// For a short command.
const COMMAND: u64 = 60;
/// For `systemctl reboot` and `poweroff`.
const STOP: u64 = 120;

/// The directory of a service that holds memory.
fn held(name: &str) -> String {
    format!("/run/held/{name}")
}

/// As in vm/run: options that save the emulator work.
const KERNEL_LINE: &str =
    "console=ttyS0 loglevel=5 oops=panic panic=-1 mitigations=off norandmaps \
    nokaslr tsc=reliable no_timer_check 8250.nr_uarts=1";

/// A zoned NVMe device.
pub struct Zoned<'a> {
    pub serial: &'a str,
    pub mib: u64,
    pub zone_mib: u64,
    /// Has a subsystem of its own, so that its controller can be unplugged.
    pub movable: bool,
}

pub struct Machine {
    name: String,
    command: Command,
    sockets: [PathBuf; 2],
    console: PathBuf,
    monitor: Monitor,
    agent: Agent,
    /// QEMU is dropped before its images.
    qemu: Qemu,
    _images: Vec<Image>,
}

/// A machine before its start.
pub struct Plan<'a> {
    parts: &'a Parts,
    name: &'a str,
    arguments: Vec<String>,
    line: String,
    images: Vec<Image>,
}

impl<'a> Plan<'a> {
    pub fn new(parts: &'a Parts, name: &'a str) -> Plan<'a> {
        Plan { parts, name, arguments: Vec::new(), line: String::new(), images: Vec::new() }
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.parts.file(&format!("{}.{ending}", self.name))
    }

    pub fn add(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|s| (*s).to_string()));
        self
    }

    /// Adds to the kernel's command line.
    pub fn kernel(mut self, words: &str) -> Self {
        self.line = format!("{} {words}", self.line);
        self
    }

    /// Adds a disk without zones, named by its serial number.
    pub fn disk(mut self, serial: &str, mib: u64) -> Outcome<Self> {
        let image = Image::new(self.file(&format!("{serial}.img")), mib << 20)?;
        let path = image.0.display();
        let drive = format!("if=none,id={serial},file={path},format=raw,cache=unsafe");
        let device = format!("virtio-blk-pci,drive={serial},serial={serial}");
        self.images.push(image);
        Ok(self.add(&["-drive", &drive, "-device", &device]))
    }

    pub fn zoned(mut self, device: &Zoned) -> Outcome<Self> {
        let Zoned { serial, mib, zone_mib, movable } = *device;
        let image = Image::new(self.file(&format!("{serial}.img")), mib << 20)?;
        let path = image.0.display();
        let drive =
            format!("if=none,id={serial},file={path},format=raw,cache=unsafe,discard=unmap");
        self = self.add(&["-drive", &drive]);
        self.images.push(image);
        if movable {
            let port = json!({
                "driver": "pcie-root-port", "id": format!("port-{serial}"), "chassis": self.images.len(),
            });
            let subsystem = json!({
                "driver": "nvme-subsys", "id": format!("subsystem-{serial}"), "nqn": serial,
            });
            self = self.add(&["-device", &port.to_string(), "-device", &subsystem.to_string()]);
        }
        let namespace = json!({
            "driver": "nvme-ns", "id": format!("namespace-{serial}"), "bus": format!("nvme-{serial}"),
            "drive": serial, "nsid": 1, "logical_block_size": 4096, "physical_block_size": 4096,
            "zoned": true, "zoned.zone_size": zone_mib << 20,
        });
        let controller = controller(serial, movable).to_string();
        Ok(self.add(&["-device", &controller, "-device", &namespace.to_string()]))
    }

    /// Starts the machine without waiting until it is up.
    pub fn start(mut self) -> Outcome<Machine> {
        let sockets = [self.file("qmp"), self.file("agent")];
        let console = self.file("console");
        let _ = fs::remove_file(&console);
        let root = Image::copy(&self.parts.disk, self.file("root"))?;
        let mut command = self.command(&root.0, &sockets, &console)?;
        self.images.push(root);
        let (qemu, monitor, agent) = power_on(&mut command, &sockets)?;
        Ok(Machine {
            name: self.name.to_string(),
            command,
            sockets,
            console,
            monitor,
            agent,
            qemu,
            _images: self.images,
        })
    }

    fn command(&self, root: &Path, sockets: &[PathBuf; 2], console: &Path) -> Outcome<Command> {
        let log = File::create(self.file("qemu")).context("make a log")?;
        let parts = self.parts;
        let suite = std::env::current_exe().context("where am I")?;
        let socket = |path: &Path| format!("path={},server=on,wait=off", path.display());
        let [monitor, agent] = sockets.each_ref().map(|path| socket(path));
        let mut command = Command::new("qemu-system-x86_64");
        command
            .args(["-name", self.name, "-nodefaults", "-display", "none", "-m", "1G", "-smp", "2"])
            .args(["-machine", "q35,sata=off,usb=off,smbus=off,i8042=off,vmport=off"])
            .args(match std::env::var("ACCEL").as_deref() {
                Ok("kvm") => ["-accel", "kvm", "-cpu", "host"],
                _ => ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off,svm=off"],
            })
            .arg("-kernel")
            .arg(&parts.kernel)
            .arg("-initrd")
            .arg(&parts.initrd)
            .args(["-append", &format!("{KERNEL_LINE}{}", self.line)])
            .args(["-chardev", &format!("file,id=console,append=on,path={}", console.display())])
            .args(["-serial", "chardev:console"])
            .args([
                "-drive",
                &format!("if=none,id=root,format=raw,cache=unsafe,file={}", root.display()),
            ])
            .args(["-device", "virtio-blk-pci,drive=root"])
            .args([
                "-drive",
                &format!("if=none,id=suite,format=raw,read-only=on,file={}", suite.display()),
            ])
            .args(["-device", "virtio-blk-pci,drive=suite"])
            .args(["-device", "virtio-rng-pci", "-device", "virtio-serial-pci"])
            .args(["-chardev", &format!("socket,id=agent,{agent}")])
            .args(["-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"])
            .args(["-qmp", &format!("unix:{}", monitor.replacen("path=", "", 1))])
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("share a log")?)
            .stderr(log);
        Ok(command)
    }
}

/// Starts QEMU, and connects to its monitor and to the agent.
fn power_on(command: &mut Command, sockets: &[PathBuf; 2]) -> Outcome<(Qemu, Monitor, Agent)> {
    for socket in sockets {
        let _ = fs::remove_file(socket);
    }
    let qemu = Qemu(command.spawn().context("start qemu-system-x86_64")?);
    let [monitor, agent] = sockets;
    Ok((qemu, Monitor::connect(monitor)?, Agent::connect(agent)?))
}

/// The controller of a zoned device, for QEMU's command line and monitor.
fn controller(serial: &str, movable: bool) -> Value {
    let mut device = json!({"driver": "nvme", "id": format!("nvme-{serial}"), "serial": serial});
    if movable {
        device["subsys"] = json!(format!("subsystem-{serial}"));
        device["bus"] = json!(format!("port-{serial}"));
    }
    device
}

/// A QEMU process, killed on drop.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An image of a disk, removed on drop.
struct Image(PathBuf);

impl Image {
    fn copy(from: &Path, to: PathBuf) -> Outcome<Image> {
        let image = Image(to);
        let mut cp = Command::new("cp");
        let done = cp.args(["--sparse=always", "--reflink=auto"]).arg(from).arg(&image.0).status();
        match done.context("cp")?.success() {
            true => Ok(image),
            false => Err(format!("cannot copy {}", from.display())),
        }
    }

    fn new(path: PathBuf, bytes: u64) -> Outcome<Image> {
        let file = File::create(&path).context(path.display())?;
        let image = Image(path);
        file.set_len(bytes).context(image.0.display())?;
        Ok(image)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Machine {
    pub fn console(&self) -> &Path {
        &self.console
    }

    /// Waits until the machine has started; how long that took.
    pub fn up(&mut self) -> Outcome<Duration> {
        let start = Instant::now();
        self.agent.meet(seconds(START)).context(&self.name)?;
        Ok(start.elapsed())
    }

    /// Starts this program as a service that swaps out memory. The machine has the
    /// program's file as a disk.
    pub fn hold(&mut self, name: &str, mib: u32) -> Outcome {
        let directory = held(name);
        self.ok(&format!(
            "rm -rf {directory}; cp -f /dev/vdb /run/{name}; chmod +x /run/{name}; \
             systemctl reset-failed {name}.service 2> /dev/null; \
             systemd-run --quiet --unit={name} /run/{name} hold {directory} {mib}"
        ))?;
        self.comes(&format!("test -e {directory}/{}", hold::OUT), COMMAND).map(drop)
    }

    /// Has a service read its memory.
    pub fn ask_for(&mut self, name: &str) -> Outcome {
        self.ok(&format!("touch {}/{}", held(name), hold::READ)).map(drop)
    }

    /// Has a service read its memory, and waits until all pages were right.
    pub fn read_held(&mut self, name: &str) -> Outcome<Duration> {
        self.ask_for(name)?;
        self.comes(&format!("test -e {}/{}", held(name), hold::RIGHT), COMMAND)
    }

    /// Runs a line of shell.
    pub fn run(&mut self, line: &str) -> Outcome<Ran> {
        self.agent.run(line, seconds(COMMAND)).context(&self.name)
    }

    pub fn run_for(&mut self, line: &str, patience: u64) -> Outcome<Ran> {
        self.agent.run(line, seconds(patience)).context(&self.name)
    }

    /// Runs a line of shell that must succeed, and returns its output.
    pub fn ok(&mut self, line: &str) -> Outcome<String> {
        let ran = self.run(line)?;
        match ran.status {
            Some(0) => Ok(ran.out),
            status => Err(format!(
                "{}: `{line}` ended with {status:?}: {}",
                self.name,
                [ran.out, ran.err].join("\n").trim()
            )),
        }
    }

    /// Repeats a line of shell until it succeeds.
    pub fn comes(&mut self, line: &str, patience: u64) -> Outcome<Duration> {
        let start = Instant::now();
        while start.elapsed() < seconds(patience) {
            if self.run(line)?.status == Some(0) {
                return Ok(start.elapsed());
            }
            sleep(Duration::from_millis(300));
        }
        Err(format!("{}: `{line}` did not come true in {patience} s", self.name))
    }

    /// Waits until a service has ended or failed.
    pub fn ends(&mut self, unit: &str, patience: u64) -> Outcome<Duration> {
        self.comes(
            &format!("systemctl is-active {unit} | grep -qE '^(inactive|failed)$'"),
            patience,
        )
    }

    /// Reboots, and waits for the reset.
    pub fn reboot(&mut self) -> Outcome<Duration> {
        self.stop_by("systemctl reboot", "RESET")
    }

    /// Shuts down, and waits for the end.
    pub fn power_off(&mut self) -> Outcome<Duration> {
        self.stop_by("systemctl poweroff", "SHUTDOWN")
    }

    fn stop_by(&mut self, line: &str, event: &str) -> Outcome<Duration> {
        self.monitor.forget()?;
        let start = Instant::now();
        self.agent.tell(line)?;
        self.monitor.event(event, seconds(STOP)).context(format!("{}: {line}", self.name))?;
        Ok(start.elapsed())
    }

    /// Kills QEMU, and starts it again with the same disks.
    pub fn power_cut(&mut self) -> Outcome {
        self.qemu.0.kill().and_then(|()| self.qemu.0.wait()).context("kill QEMU")?;
        (self.qemu, self.monitor, self.agent) = power_on(&mut self.command, &self.sockets)?;
        Ok(())
    }

    /// Resets the machine, as a power failure does, but keeps what was plugged and unplugged.
    pub fn reset(&mut self) -> Outcome {
        self.monitor.forget()?;
        self.monitor.order("system_reset", json!({}))?;
        self.monitor.event("RESET", seconds(COMMAND)).map(drop)
    }

    /// Unplugs the controller of a movable device.
    pub fn unplug(&mut self, serial: &str) -> Outcome {
        self.monitor.forget()?;
        self.monitor.order("device_del", json!({"id": format!("nvme-{serial}")}))?;
        self.monitor.event("DEVICE_DELETED", seconds(COMMAND)).map(drop)
    }

    pub fn plug(&mut self, serial: &str) -> Outcome {
        self.monitor.order("device_add", controller(serial, true)).map(drop)
    }

    /// Plugs in the cable of a network card, or pulls it.
    pub fn link(&mut self, card: &str, up: bool) -> Outcome {
        self.monitor.order("set_link", json!({"name": card, "up": up})).map(drop)
    }
}

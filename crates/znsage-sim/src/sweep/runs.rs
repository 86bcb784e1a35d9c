// SPDX-License-Identifier: GPL-2.0-only
//! A directory of results. Any number of processes, on any number of machines, may share it:
//! each holds a lock on the run that it is at, and a result appears whole, by rename. The lock
//! of a process that is killed goes with it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::course::Course;
use crate::device::Params;
use crate::run::RunError;
use crate::{RunResult, Spec};

/// Of the simulator. A result of another version counts as missing.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A finished run: one file, and what `znsage-sim run --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// All that the result depends on: every key of the spec with its value, `parameters` of
    /// the device, and digests of the `files` that it names.
    pub spec: Value,
    /// Of the simulator.
    pub version: String,
    /// The command line that ran it.
    pub command: String,
    /// Numbers of the measured phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
    /// How the run went; empty for a replayed trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Stored {
    /// What became of a run.
    pub fn new(spec: &Spec, ran: Result<(RunResult, Course), RunError>) -> Self {
        Self::of(Identity::default().of(spec), ran)
    }

    fn of(spec: Value, ran: Result<(RunResult, Course), RunError>) -> Self {
        let command: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let (version, command) = (VERSION.to_string(), command.join(" "));
        match ran {
            Ok((result, course)) => {
                let (result, course) = (Some(result), Some(course));
                Stored { spec, version, command, result, course, error: None }
            }
            Err(e) => {
                let error = Some(e.to_string());
                Stored { spec, version, command, result: None, course: None, error }
            }
        }
    }
}

/// What went wrong with a file of results.
#[derive(Debug)]
pub struct RunsError(PathBuf, io::Error);

impl fmt::Display for RunsError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.0.display(), self.1)
    }
}

impl std::error::Error for RunsError {}

fn at(path: &Path) -> impl FnOnce(io::Error) -> RunsError {
    let path = path.to_path_buf();
    move |e| RunsError(path, e)
}

/// Makes specs whole. It reads each device and each file once.
#[derive(Debug, Default)]
struct Identity {
    devices: BTreeMap<String, Value>,
    files: BTreeMap<PathBuf, Option<String>>,
}

impl Identity {
    /// All that the result of a spec depends on, besides the version.
    fn of(&mut self, spec: &Spec) -> Value {
        let mut whole = serde_json::to_value(spec).expect("a spec is JSON");
        let key = format!("{} {:?}", spec.device, spec.device_set);
        let parameters = self.devices.entry(key).or_insert_with(|| {
            // The run refuses a device that cannot be read.
            let params = Params::load(&spec.device, &spec.device_set).ok();
            serde_json::to_value(params).expect("parameters are JSON")
        });
        whole["parameters"] = parameters.clone();
        let contents = spec.load.contents.as_ref().map(PathBuf::from);
        let named = [
            ("load.trace", spec.load.trace.as_ref()),
            ("load.contents", contents.as_ref()),
            ("znsage.policy-source", spec.znsage.policy_source.as_ref()),
        ];
        let mut files = Map::new();
        for (key, path) in named {
            let Some(path) = path else { continue };
            let digest = self.files.entry(path.clone()).or_insert_with(|| digest_of(path));
            files.extend(digest.clone().map(|digest| (key.to_string(), digest.into())));
        }
        whole["files"] = files.into();
        whole
    }
}

/// The digest of a file; None for what is no file, such as the name of built-in contents.
fn digest_of(path: &Path) -> Option<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path).ok()?, &mut HashWriter(&mut hash)).ok()?;
    Some(hex(&hash.finalize()))
}

struct HashWriter<'a>(&'a mut Sha256);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What became of an attempt to get a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The file was there.
    Before,
    /// It ran.
    Ran,
    /// Another thread or process runs it.
    Busy,
}

/// A directory of results.
#[derive(Debug)]
pub struct Runs {
    directory: PathBuf,
    identity: Mutex<Identity>,
}

impl Runs {
    /// The directory need not exist.
    pub fn new(directory: &Path) -> Self {
        Runs { directory: directory.into(), identity: Mutex::default() }
    }

    /// All that the result of a spec depends on.
    fn whole(&self, spec: &Spec) -> Value {
        self.identity.lock().expect("nobody panics with it").of(spec)
    }

    /// The file of a spec.
    pub fn file(&self, spec: &Spec) -> PathBuf {
        self.file_of(&self.whole(spec))
    }

    fn file_of(&self, whole: &Value) -> PathBuf {
        let digest = Sha256::digest(serde_json::to_vec(whole).expect("it is JSON"));
        self.directory.join(hex(&digest[..16])).with_extension("json")
    }

    /// Is there a result of this version?
    pub fn has(&self, file: &Path) -> bool {
        #[derive(Deserialize)]
        struct Head {
            version: String,
        }
        // A file that cannot be parsed was lost by a crash of the machine.
        let head = fs::read(file).ok().and_then(|text| serde_json::from_slice::<Head>(&text).ok());
        head.is_some_and(|head| head.version == VERSION)
    }

    /// Reads a result.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn read(&self, file: &Path) -> Result<Stored, RunsError> {
        let text = fs::read(file).map_err(at(file))?;
        serde_json::from_slice(&text).map_err(|e| at(file)(e.into()))
    }

    /// Runs a spec by `run` and stores what became of it, if the file is missing and
    /// nobody else is at it.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn step(
        &self,
        spec: &Spec,
        run: impl FnOnce() -> Result<(RunResult, Course), RunError>,
    ) -> Result<Step, RunsError> {
        let whole = self.whole(spec);
        let file = self.file_of(&whole);
        if self.has(&file) {
            return Ok(Step::Before);
        }
        fs::create_dir_all(&self.directory).map_err(at(&self.directory))?;
        let part = file.with_extension("part");
        let open = OpenOptions::new().create(true).write(true).truncate(false).open(&part);
        let open = open.map_err(at(&part))?;
        let locked = match Flock::lock(open, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => Some(locked),
            Err((_, Errno::EWOULDBLOCK)) => return Ok(Step::Busy),
            // A file system without locks: at worst two run the same.
            Err(_) => None,
        };
        // It may have ended between the two looks: the lock is on its file then, or on a new one.
        if self.has(&file) {
            let _ = fs::remove_file(&part);
            return Ok(Step::Before);
        }
        let stored = Stored::of(whole, run());
        let mut text = serde_json::to_vec(&stored).expect("it is JSON");
        text.push(b'\n');
        let part = match &locked {
            Some(_) => part,
            None => part.with_extension(format!("{}.part", std::process::id())),
        };
        fs::write(&part, text).map_err(at(&part))?;
        fs::rename(&part, &file).map_err(at(&file))?;
        Ok(Step::Ran)
    }
}

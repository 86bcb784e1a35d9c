// SPDX-License-Identifier: GPL-2.0-only
//! gcc compiles Lua at a stroke, with less memory than it takes: a file that
//! includes all the others.

use std::fs;
use std::path::{Path, PathBuf};

use super::group::{Disk, Group, DISK};
use super::{Load, Meter, Outcome, Part};
use crate::guest::say;
use crate::workloads::model::{Metric, Setting, Sizes};
use crate::workloads::sources;
use crate::Result;

const ALL: &str = "all.c";
const OBJECT: &str = "all.o";

pub struct Compile {
    /// Lua's, absolute: gcc writes it into the object.
    directory: PathBuf,
    sizes: Sizes,
    /// What comes out of it when nothing is swapped.
    object: Vec<u8>,
}

impl Compile {
    /// The compiler's own code is read first outside of any group: in one, the
    /// kernel would drop and read it again and again, from the host's files.
    pub fn new(raw: &Path) -> Result<Compile> {
        let directory = sources::lua(raw.parent().unwrap_or(raw));
        let directory = fs::canonicalize(&directory)
            .map_err(|e| format!("cannot find Lua in {}: {e}", directory.display()))?;
        let all = Disk::path(ALL);
        let text = includes(&names(&directory)?);
        fs::write(&all, text).map_err(|e| format!("cannot write {}: {e}", all.display()))?;
        say("  gcc is read once");
        let empty = Disk::path("empty.c");
        fs::write(&empty, "int main(void) { return 0; }\n")
            .map_err(|e| format!("cannot write {}: {e}", empty.display()))?;
        let object = Disk::path("empty.o");
        let (empty, object) = (empty.to_string_lossy(), object.to_string_lossy());
        crate::guest::call("gcc", &["-O0", "-c", "-o", &object, &empty])?;
        Ok(Compile { directory, sizes: Sizes::default(), object: Vec::new() })
    }

    fn compile(&self, group: &Group) -> Result<()> {
        let output = group
            .command("gcc")
            .args(["-O0", "-w", "-DLUA_USE_POSIX", "-I"])
            .arg(&self.directory)
            .args(["-c", "-o"])
            .args([Disk::path(OBJECT), Disk::path(ALL)])
            // What the compiler writes for the assembler.
            .env("TMPDIR", DISK)
            .output()
            .map_err(|e| format!("cannot run gcc: {e}"))?;
        group.unharmed()?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                let first: Vec<&str> = said.lines().take(3).collect();
                Err(format!("gcc failed ({}): {}", output.status, first.join("; ")))
            }
        }
    }

    /// The same object as in memory, byte for byte.
    fn verify(&mut self, setting: Setting) -> Result<String> {
        let path = Disk::path(OBJECT);
        let object = fs::read(&path).map_err(|e| format!("gcc left no object: {e}"))?;
        let _ = fs::remove_file(&path);
        if setting == Setting::Memory {
            self.object = object;
        } else if object != self.object {
            return Err("gcc made another object than in memory".to_string());
        }
        Ok(format!("the same object of {} bytes", self.object.len()))
    }
}

/// The C files of a directory, in an order that is always the same.
fn names(directory: &Path) -> Result<Vec<String>> {
    let failed = |e: std::io::Error| format!("cannot read {}: {e}", directory.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        names.extend(name.ends_with(".c").then_some(name));
    }
    names.sort();
    Ok(names)
}

/// The parts' private names do not clash. What `lprefix.h` asks of the system's
/// headers has to be asked before any of these.
fn includes(names: &[String]) -> String {
    let head = "#define LUA_CORE\n#define LUA_LIB\n#include \"lprefix.h\"\n".to_string();
    names.iter().fold(head, |text, name| text + &format!("#include \"{name}\"\n"))
}

impl Load for Compile {
    fn parts(&self) -> Vec<Part> {
        let metrics = vec![Metric::new("time", "Time", "s")];
        vec![Part { name: "compile", title: "gcc compiles Lua", metrics }]
    }

    fn measure(&mut self, setting: Setting) -> Result<Vec<Outcome>> {
        let group = Group::new("compile")?;
        if setting.system().is_some() {
            group.limit(self.sizes.limit_bytes)?;
        }
        let meter = Meter::start()?;
        self.compile(&group)?;
        let took = meter.seconds();
        let mut outcome = meter.stop([("time", took)], String::new())?;
        if setting == Setting::Memory {
            let memory_bytes = group.peak()?;
            self.sizes = Sizes { memory_bytes, limit_bytes: memory_bytes / 2 };
        }
        outcome.verified = self.verify(setting)?;
        Ok(vec![outcome])
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_c_files_are_included_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["lzio.c", "lapi.c", "lua.h"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let text = includes(&names(dir.path()).unwrap());
        assert!(
            text.ends_with("\"lprefix.h\"\n#include \"lapi.c\"\n#include \"lzio.c\"\n"),
            "{text}"
        );
        assert!(names(Path::new("/no/such")).is_err());
    }
}

// SPDX-License-Identifier: GPL-2.0-only
//! gcc compiles Lua as one file that includes all others, with less memory than that
//! takes.

use std::fs;
use std::path::{Path, PathBuf};

use super::group::{Disk, Group, DISK};
use super::load::{Load, Meter, Outcome, Part};
use crate::files::write;
use crate::guest::program::call;
use crate::result::{Context, Result};
use crate::workloads::model::{Metric, Setting, Sizes};
use crate::workloads::sources;

const ALL: &str = "all.c";
const OBJECT: &str = "all.o";

pub struct Compile {
    /// The source of Lua. Absolute, as gcc writes it into the object.
    directory: PathBuf,
    sizes: Sizes,
    /// The object that was compiled in memory.
    object: Vec<u8>,
}

impl Compile {
    /// Runs the compiler once outside of any group. Within one, the kernel would drop the
    /// compiler's code and read it again and again from the host's files.
    pub fn new(raw: &Path) -> Result<Compile> {
        let directory = sources::lua(raw.parent().unwrap_or(raw));
        let directory = fs::canonicalize(&directory)
            .context(format_args!("cannot find Lua in {}", directory.display()))?;
        let all = Disk::path(ALL);
        write(&all, includes(&names(&directory)?))?;
        eprintln!("  gcc is read once");
        let empty = Disk::path("empty.c");
        write(&empty, "int main(void) { return 0; }\n")?;
        let object = Disk::path("empty.o");
        let (empty, object) = (empty.to_string_lossy(), object.to_string_lossy());
        call("gcc", &["-O0", "-c", "-o", &object, &empty])?;
        Ok(Compile { directory, sizes: Sizes::default(), object: Vec::new() })
    }

    fn compile(&self, group: &Group) -> Result<()> {
        let mut command = group.command("gcc");
        command
            .args(["-O0", "-w", "-DLUA_USE_POSIX", "-I"])
            .arg(&self.directory)
            .args(["-c", "-o"])
            .args([Disk::path(OBJECT), Disk::path(ALL)])
            // The compiler's output for the assembler.
            .env("TMPDIR", DISK);
        group.finish(&mut command, "gcc").map(drop)
    }

    /// Compares the object with the one that was compiled in memory.
    fn verify(&mut self, setting: Setting) -> Result<String> {
        let path = Disk::path(OBJECT);
        let object = fs::read(&path).context("gcc left no object")?;
        let _ = fs::remove_file(&path);
        if setting == Setting::Memory {
            self.object = object;
        } else if object != self.object {
            return Err("gcc made another object than in memory".to_string());
        }
        Ok(format!("the same object of {} bytes", self.object.len()))
    }
}

/// The C files of a directory, sorted.
fn names(directory: &Path) -> Result<Vec<String>> {
    let what = format!("cannot read {}", directory.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).context(&what)? {
        let name = entry.context(&what)?.file_name().to_string_lossy().into_owned();
        names.extend(name.ends_with(".c").then_some(name));
    }
    names.sort();
    Ok(names)
}

/// A source that includes them. Their static names do not clash. `lprefix.h` must precede
/// the system's headers.
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
        if let Some(limit) = self.sizes.limit(setting) {
            group.limit(limit)?;
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
    fn c_files_are_included_in_order() {
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

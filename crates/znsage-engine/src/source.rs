// SPDX-License-Identifier: GPL-2.0-only
//! Policies from their source: compiled with the system's compiler and loaded, as a
//! module is into the kernel.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsString};
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::{env, io, process, ptr};

use crate::config::Policy;
use crate::sys;

/// The files that are compiled with a policy, and those that it can include. They are
/// part of the program, which does not need its sources.
const FILES: [(&str, &str); 8] = [
    ("znsage.h", include_str!("../../../include/znsage.h")),
    ("znsage.bpf.h", include_str!("../../../port/user/znsage.bpf.h")),
    ("zport.h", include_str!("../../../port/user/zport.h")),
    ("calls.h", include_str!("../../../port/user/policy/calls.h")),
    ("calls.c", include_str!("../../../port/user/policy/calls.c")),
    ("linux/module.h", include_str!("../../../port/user/linux/module.h")),
    ("linux/slab.h", include_str!("../../../port/user/linux/slab.h")),
    ("linux/types.h", include_str!("../../../port/user/linux/types.h")),
];

/// A directory that is removed when dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nr = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = env::temp_dir().join(format!("znsage-policy-{}-{nr}", process::id()));
        // Nobody else may write to it: its content is executed.
        DirBuilder::new().mode(0o700).create(&dir)?;
        let dir = Temporary(dir);
        fs::create_dir(dir.0.join("linux"))?;
        for (name, text) in FILES {
            fs::write(dir.0.join(name), text)?;
        }
        Ok(dir)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A directory that stays does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn compile(source: &Path, dir: &Path, object: &Path) -> Result<(), String> {
    let cc = env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    let out = Command::new(&cc)
        .args(["-std=gnu11", "-O2", "-g", "-Wall", "-shared", "-fPIC", "-I"])
        .args([dir, source, &dir.join("calls.c")])
        .arg("-o")
        .arg(object)
        .output()
        .map_err(|e| format!("the compiler {}: {e}", cc.to_string_lossy()))?;
    let said = String::from_utf8_lossy(&out.stderr);
    match out.status.success() {
        true => Ok(()),
        false => Err(format!("does not compile\n{}", said.trim_end())),
    }
}

fn load(object: &Path) -> Result<Policy, String> {
    let path = CString::new(object.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    let mut why = ptr::null();
    // SAFETY: the path ends with a zero. The author of the policy is trusted like that of
    // this program.
    let policy = unsafe { sys::zse_load_policy(path.as_ptr(), &mut why) };
    if let Some(policy) = Policy::from_ptr(policy) {
        return Ok(policy);
    }
    // SAFETY: set by the call above, to a text that ends with a zero.
    let why = unsafe { CStr::from_ptr(why) };
    Err(why.to_string_lossy().into_owned())
}

impl Policy {
    /// The policy that a C file registers, or that is in a source for BPF. It is compiled
    /// once, and stays loaded.
    ///
    /// # Errors
    /// The compiler's messages, or why the policy cannot be loaded.
    pub fn from_source(source: &Path) -> Result<Policy, String> {
        static LOADED: Mutex<Option<HashMap<Vec<u8>, Policy>>> = Mutex::new(None);

        let text = fs::read(source).map_err(|e| e.to_string())?;
        let mut loaded = LOADED.lock().expect("nobody panics with it");
        let loaded = loaded.get_or_insert_with(HashMap::new);
        if let Some(policy) = loaded.get(&text) {
            return Ok(*policy);
        }
        let dir = Temporary::new().map_err(|e| format!("a temporary directory: {e}"))?;
        let object = dir.0.join("policy.so");
        compile(source, &dir.0, &object)?;
        let policy = load(&object)?;
        loaded.insert(text, policy);
        Ok(policy)
    }
}

// SPDX-License-Identifier: GPL-2.0-only
//! Which files are read, by the rules of systemd: the first znsage.conf found, then
//! the files of all znsage.conf.d by name; if a name occurs twice, the first one found.

use std::collections::BTreeMap;
use std::io;

use super::fault::Fault;
use crate::error::reason;
use crate::sys::Sys;

/// For the administrator, until the next reboot, for packages.
pub const PLACES: [&str; 3] = ["/etc", "/run", "/usr/lib"];
pub const NAME: &str = "znsage.conf";

/// Path and text of each file; later ones override earlier ones. An unreadable file
/// is a fault. A line that is not UTF-8 is a fault, too (ini.rs).
pub fn read(sys: &dyn Sys) -> (Vec<(String, String)>, Vec<Fault>) {
    let (mut texts, mut faults) = (Vec::new(), Vec::new());
    for path in paths(sys) {
        match sys.read_bytes(&path) {
            Ok(bytes) => texts.push((path, String::from_utf8_lossy(&bytes).into_owned())),
            // Removed since it was listed.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => faults.push(Fault {
                file: path,
                line: None,
                section: None,
                message: format!("cannot read it: {}", reason(&e)),
                hint: None,
            }),
        }
    }
    (texts, faults)
}

fn paths(sys: &dyn Sys) -> Vec<String> {
    let main = PLACES.iter().map(|place| format!("{place}/{NAME}")).find(|path| sys.exists(path));
    let mut more = BTreeMap::new();
    for place in PLACES {
        let directory = format!("{place}/{NAME}.d");
        // Units contain the name.
        let fits = |name: &String| name.ends_with(".conf") && !name.contains(char::is_control);
        for name in sys.list(&directory).into_iter().filter(fits) {
            // An empty file, or a link to /dev/null, hides a later one of the same name.
            more.entry(name.clone()).or_insert(format!("{directory}/{name}"));
        }
    }
    main.into_iter().chain(more.into_values()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fake::Fake;

    #[test]
    fn files_of_the_administrator_hide_those_of_packages() {
        let fake = Fake::new();
        assert!(paths(&fake).is_empty());
        for path in [
            "/usr/lib/znsage.conf",
            "/usr/lib/znsage.conf.d/20-b.conf",
            "/usr/lib/znsage.conf.d/10-a.conf",
            "/run/znsage.conf.d/30-c.conf",
            "/etc/znsage.conf.d/20-b.conf",
            "/etc/znsage.conf.d/20-b.conf.dpkg-old",
        ] {
            fake.put(path, "");
        }
        let drop_ins = [
            "/usr/lib/znsage.conf.d/10-a.conf",
            "/etc/znsage.conf.d/20-b.conf",
            "/run/znsage.conf.d/30-c.conf",
        ];
        assert_eq!(paths(&fake), [&["/usr/lib/znsage.conf"], &drop_ins[..]].concat());
        fake.put("/run/znsage.conf", "");
        assert_eq!(paths(&fake)[0], "/run/znsage.conf");
        fake.put("/etc/znsage.conf", "");
        assert_eq!(paths(&fake)[0], "/etc/znsage.conf");
        assert_eq!(paths(&fake)[1..], drop_ins);
    }

    #[test]
    fn unreadable_file_is_a_fault() {
        let fake = Fake::new();
        fake.put_dir("/etc/znsage.conf");
        let (texts, faults) = read(&fake);
        assert!(texts.is_empty());
        assert_eq!(faults[0].to_string(), "/etc/znsage.conf: cannot read it: Is a directory");
    }
}

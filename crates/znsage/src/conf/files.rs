// SPDX-License-Identifier: GPL-2.0-only
//! Which files count, as systemd's own: of znsage.conf the first that there is,
//! then all of znsage.conf.d by their names, of each name the first.

use std::collections::BTreeMap;
use std::io;

use super::Fault;
use crate::error::reason;
use crate::sys::Sys;

/// Administrator, this run of the machine, packages.
pub const PLACES: [&str; 3] = ["/etc", "/run", "/usr/lib"];
pub const NAME: &str = "znsage.conf";

/// Path and text of each file in the order in which they count; a later one
/// has the last word. What cannot be read is a fault.
pub fn read(sys: &dyn Sys) -> (Vec<(String, String)>, Vec<Fault>) {
    let (mut texts, mut faults) = (Vec::new(), Vec::new());
    for path in paths(sys) {
        match sys.read(&path) {
            Ok(text) => texts.push((path, text)),
            // Gone since it was listed.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => faults.push(Fault {
                file: path,
                line: None,
                section: None,
                message: format!("cannot be read: {}", reason(&e)),
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
        // A name goes into units.
        let fits = |name: &String| name.ends_with(".conf") && !name.contains(char::is_control);
        for name in sys.list(&directory).into_iter().filter(fits) {
            // An empty one, or a link to /dev/null, is in the way of another.
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
    fn the_administrators_file_comes_before_those_of_packages() {
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
    fn what_cannot_be_read_is_told() {
        let fake = Fake::new();
        fake.put_dir("/etc/znsage.conf");
        let (texts, faults) = read(&fake);
        assert!(texts.is_empty());
        assert_eq!(faults[0].to_string(), "/etc/znsage.conf: cannot be read: Is a directory");
    }
}

// SPDX-License-Identifier: GPL-2.0-only
//! Whole outputs, compared with the files in tests/printed. To renew them:
//! SNAPSHOTS=overwrite cargo test -p znsage

use snapbox::{assert_data_eq, Data, IntoData};

/// `name` is the file below tests/printed. The version is left out.
fn compare(printed: &str, name: &str) {
    let printed = printed
        .replace(concat!("version ", env!("CARGO_PKG_VERSION")), "version VERSION")
        .replace(concat!("version=\"", env!("CARGO_PKG_VERSION")), "version=\"VERSION");
    let path = format!("{}/tests/printed/{name}", env!("CARGO_MANIFEST_DIR"));
    assert_data_eq!(printed.into_data().raw(), Data::read_from(path.as_ref(), None).raw());
}

pub fn compare_text(text: &str, name: &str) {
    compare(text, &format!("text/{name}.txt"));
}

pub fn compare_json(json: &serde_json::Value, name: &str) {
    compare(&format!("{json:#}\n"), &format!("json/{name}.json"));
}

// SPDX-License-Identifier: GPL-2.0-only
//! Results for `znsage report`.

use znsage::parsers::page;

use crate::text;

/// The page is complete, and text of the result is escaped.
pub fn result(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(html) = page(text) else { return };
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    for once in ["<body>", "</body>", "</style>"] {
        assert_eq!(html.matches(once).count(), 1, "{once}");
    }
    assert!(html.matches("<script>").count() <= 1);
}

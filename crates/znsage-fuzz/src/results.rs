// SPDX-License-Identifier: GPL-2.0-only
//! Results that `znsage report` makes pages of.

use znsage::parsers::page;

use crate::text;

/// A page is whole, and what a result says is text in it and nothing else.
pub fn result(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(html) = page(text) else { return };
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    for once in ["<body>", "</body>", "</style>"] {
        assert_eq!(html.matches(once).count(), 1, "{once}");
    }
    assert!(html.matches("<script>").count() <= 1);
}

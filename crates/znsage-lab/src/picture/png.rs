// SPDX-License-Identifier: GPL-2.0-only
//! SVG to PNG.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::svg::FONT;
use crate::result::{Context, Result};

/// Debian's fonts-dejavu-core, which vm/setup installs.
const FONTS: [&str; 2] = [
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf",
];

/// Pixels a unit of the SVG, for screens of twice the density.
const DENSITY: f32 = 2.0;

pub fn render(svg: &str) -> Result<Vec<u8>> {
    let mut options = Options { font_family: FONT.to_string(), ..Options::default() };
    for font in FONTS {
        let data = std::fs::read(font)
            .map_err(|e| format!("cannot read {font}: {e} (`make setup` installs it)"))?;
        options.fontdb_mut().load_font_data(data);
    }
    let tree = Tree::from_str(svg, &options).context("the picture")?;
    let pixels = |length: f32| (length * DENSITY).ceil() as u32;
    let mut pixmap = Pixmap::new(pixels(tree.size().width()), pixels(tree.size().height()))
        .ok_or("the picture has no size")?;
    let transform = Transform::from_scale(DENSITY, DENSITY);
    resvg::render(&tree, transform, &mut pixmap.as_mut());
    pixmap.encode_png().context("the picture")
}

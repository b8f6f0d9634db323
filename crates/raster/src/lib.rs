//! SVG as PNG, for programs that take no SVG: slides and word processors.
//!
//! ```
//! let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="1in" height="0.5in"><rect width="96" height="48"/></svg>"#;
//! let png = netloom_raster::png(svg).unwrap();
//! assert!(png.starts_with(b"\x89PNG"));
//! ```

use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Family, Query};
use resvg::usvg::{Options, Tree};

/// Dots per inch: what publishers ask of figures.
pub const DPI: f32 = 300.0;

/// Dots per inch of SVG's own unit.
const SVG_DPI: f32 = 96.0;

/// Fonts without serifs that systems have, those of our figures first.
const SANS_SERIF: [&str; 6] =
    ["Helvetica", "Arial", "Liberation Sans", "DejaVu Sans", "Noto Sans", "Cantarell"];

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has text, and the system no font.
    #[error("the system has no font for its text: install one, such as DejaVu Sans, or write SVG")]
    NoFont,
    /// It is no SVG that can be drawn.
    #[error(transparent)]
    Svg(#[from] resvg::usvg::Error),
    /// It has no size, or has more dots than memory holds.
    #[error("it is {width:.0} × {height:.0} dots large")]
    Size {
        /// Dots.
        width: f32,
        /// Dots.
        height: f32,
    },
    /// The picture cannot be compressed.
    #[error("{0}")]
    Png(String),
}

/// Draws an SVG on white, [`DPI`] dots per inch.
///
/// # Errors
/// If it is no SVG, it has text and the system no fonts, or it has no size.
pub fn png(svg: &str) -> Result<Vec<u8>, Error> {
    let fonts = fonts();
    if fonts.is_empty() && svg.contains("<text") {
        return Err(Error::NoFont);
    }
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    let tree = Tree::from_str(svg, &options)?;
    let scale = DPI / SVG_DPI;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    let mut picture = dots(width)
        .zip(dots(height))
        .and_then(|(width, height)| Pixmap::new(width, height))
        .ok_or(Error::Size { width, height })?;
    picture.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().map_err(|error| Error::Png(error.to_string()))
}

/// The system's fonts. Those that are asked for by kind (`sans-serif`) are ones that it has.
fn fonts() -> Database {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    let is_there =
        |name: &&str| fonts.query(&Query { families: &[Family::Name(name)], ..Query::default() }).is_some();
    let any = fonts.faces().next().and_then(|face| face.families.first()).map(|(name, _)| name.clone());
    let found = SANS_SERIF.into_iter().find(is_there).map(str::to_owned).or(any);
    if let Some(name) = found {
        fonts.set_sans_serif_family(name);
    }
    fonts
}

/// A length in whole dots.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a positive number of few digits"
)]
fn dots(length: f32) -> Option<u32> {
    let length = length.ceil();
    (1.0..1e6).contains(&length).then_some(length as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Width, height and dots (red, green, blue, alpha) of a PNG.
    fn read(png: &[u8]) -> Pixmap {
        Pixmap::decode_png(png).unwrap()
    }

    #[test]
    fn a_drawing_has_its_size_in_inches_and_its_colours() {
        let svg = r##"<svg xmlns="http://www.w3.org/2000/svg" width="2in" height="1in" viewBox="0 0 200 100">
            <rect x="100" width="100" height="100" fill="#d55e00"/></svg>"##;
        let picture = read(&png(svg).unwrap());
        assert_eq!((picture.width(), picture.height()), (600, 300));
        let colour = |x, y| {
            let dot = picture.pixel(x, y).unwrap();
            (dot.red(), dot.green(), dot.blue(), dot.alpha())
        };
        assert_eq!(colour(10, 150), (255, 255, 255, 255));
        assert_eq!(colour(450, 150), (0xd5, 0x5e, 0, 255));
    }

    #[test]
    fn text_is_drawn_whatever_fonts_there_are() {
        let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="1in" height="1in"><g font-family="No Such Font, sans-serif">
            <text x="10" y="50" font-size="40">M</text></g></svg>"#;
        match png(svg) {
            Ok(picture) => assert!(read(&picture).pixels().iter().any(|dot| dot.red() < 64), "no ink"),
            Err(error) => assert!(matches!(error, Error::NoFont) && fonts().is_empty(), "{error}"),
        }
    }

    #[test]
    fn what_is_no_drawing_is_an_error() {
        assert!(matches!(png("no drawing"), Err(Error::Svg(_))));
    }
}

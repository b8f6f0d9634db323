//! Files with pictures: SVG, or PNG where netloom was built with the feature `png`.

use std::path::Path;

use netloom_scenario::Problem;

use crate::failure::Failure;
use crate::files::write_file;

/// What a file with a picture holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Svg,
    Png,
}

impl PictureFormat {
    /// What the name of a file asks for. A file that is called otherwise would not open; devices and FIFOs have no extension.
    pub(crate) fn of(option: &'static str, file: &Path) -> Result<Self, Failure> {
        let extension = file.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let (svg, found) = (file.with_extension("svg"), file.display());
        let svg = svg.display();
        let dpi = "--dpi-x 300 --dpi-y 300";
        match extension.as_str() {
            "svg" => Ok(PictureFormat::Svg),
            "" if file.exists() && !file.is_file() => Ok(PictureFormat::Svg),
            "png" if cfg!(feature = "png") => Ok(PictureFormat::Png),
            "png" => {
                let message =
                    format!("this netloom was built without PNG (the feature `png`), found {found}");
                let help = format!("write {svg} and convert it: rsvg-convert {dpi} {svg} -o {found}");
                Err(Problem::new(option, message).help(help).into())
            }
            "pdf" => {
                let message = format!("expected a file that ends in .svg or .png, found {found}");
                let help = format!("write {svg} and convert it: rsvg-convert -f pdf {svg} -o {found}");
                Err(Problem::new(option, message).help(help).into())
            }
            _ => {
                let message = format!("expected a file that ends in .svg or .png, found {found}");
                Err(Problem::new(option, message).into())
            }
        }
    }
}

/// Writes a picture, given as SVG, as its file's name asks for.
pub(crate) fn write_picture(file: &Path, format: PictureFormat, svg: &str) -> Result<(), Failure> {
    match format {
        PictureFormat::Svg => write_file(file, svg.as_bytes()),
        PictureFormat::Png => write_file(file, &png(file, svg)?),
    }
}

#[cfg(feature = "png")]
fn png(file: &Path, svg: &str) -> Result<Vec<u8>, Failure> {
    netloom_raster::png(svg).map_err(|error| crate::files::unwritable(file, &error))
}

#[cfg(not(feature = "png"))]
fn png(_: &Path, _: &str) -> Result<Vec<u8>, Failure> {
    unreachable!("`PictureFormat::of` refuses it")
}

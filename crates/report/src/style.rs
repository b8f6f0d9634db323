//! How points look in charts and figures: colours, dashes and marks, the same on the page and on paper.

use std::collections::HashMap;

use serde::Serialize;

/// Okabe and Ito's colours (Color Universal Design, 2008), which can be told apart with any kind of colour vision, without their yellow, which
/// is lost on white; then four that differ from them in lightness.
pub(crate) const COLOURS: [&str; 12] = [
    "#0072b2", "#d55e00", "#009e73", "#b8558c", "#c98a00", "#3f9bd1", "#6a4c93", "#5c666f", "#7a1f1f",
    "#1b4d2e", "#8c8c1a", "#000000",
];
/// The same on dark.
const ON_DARK: [&str; 12] = [
    "#56b4e9", "#ff8a4c", "#35c99a", "#e797c1", "#f0b93a", "#9bd3f5", "#b79be0", "#b4bcc4", "#ff5c5c",
    "#7fe07f", "#d8d86a", "#ffffff",
];
/// Lengths of strokes and gaps; none is a whole line.
pub(crate) const DASHES: [&[u8]; 6] = [&[], &[7, 4], &[2, 3], &[9, 3, 2, 3], &[14, 4], &[5, 2, 1, 2, 1, 2]];
/// Paths of marks, from -1 to 1: circle, triangles, square, diamond, plus, hourglass, bar.
pub(crate) const MARKS: [&str; 8] = [
    "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
    "M0 -1L1 .8H-1Z",
    "M-.85 -.85H.85V.85H-.85Z",
    "M0 -1L1 0L0 1L-1 0Z",
    "M0 1L1 -.8H-1Z",
    "M-.3 -1H.3V-.3H1V.3H.3V1H-.3V.3H-1V-.3H-.3Z",
    "M-1 -1H1L-1 1H1Z",
    "M-1 -.4H1V.4H-1Z",
];

/// What charts and keys are drawn with.
#[derive(Debug, Serialize)]
pub(crate) struct Styles {
    light: [&'static str; 12],
    dark: [&'static str; 12],
    dashes: [&'static [u8]; 6],
    marks: [&'static str; 8],
}

pub(crate) const STYLES: Styles = Styles { light: COLOURS, dark: ON_DARK, dashes: DASHES, marks: MARKS };

/// How a point looks: places in [`COLOURS`], [`DASHES`] and [`MARKS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Look {
    pub(crate) colour: usize,
    pub(crate) dash: usize,
    pub(crate) mark: usize,
}

/// The looks of points with some labels, one per axis, told apart along the axes that are varied.
///
/// The scheme has the colour, the network the mark, and what else is varied the dashes. Where nothing else is, dashes tell networks or schemes
/// apart, too, and without networks marks tell schemes: a black and white print shows them.
pub(crate) fn looks(
    points: &[&[String]],
    labels: &[&[String]],
    varied: &[usize],
    (colour_axis, mark_axis): (Option<usize>, Option<usize>),
) -> Vec<Look> {
    let mark_axis = mark_axis.filter(|axis| varied.contains(axis));
    let others: Vec<usize> =
        varied.iter().copied().filter(|&axis| Some(axis) != colour_axis && Some(axis) != mark_axis).collect();
    let mut combinations: HashMap<Vec<&String>, usize> = HashMap::new();
    let place = |point: &[String], axis: Option<usize>| {
        axis.and_then(|axis| labels[axis].iter().position(|label| *label == point[axis])).unwrap_or(0)
    };
    let mut look = |point: &&[String]| {
        let (colour, mark) = (place(point, colour_axis), place(point, mark_axis.or(colour_axis)));
        let next = combinations.len();
        let own: Vec<&String> = others.iter().map(|&axis| &labels[axis][place(point, Some(axis))]).collect();
        let combination = *combinations.entry(own).or_insert(next);
        let dash = if others.is_empty() { mark } else { combination };
        // A thirteenth colour is the first again, with other dashes.
        let again = if mark_axis.is_none() && others.is_empty() { 0 } else { colour / COLOURS.len() };
        Look { colour: colour % COLOURS.len(), dash: (dash + again) % DASHES.len(), mark: mark % MARKS.len() }
    };
    points.iter().map(&mut look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(count: usize) -> Vec<String> {
        (0..count).map(|i| format!("label {i}")).collect()
    }

    #[test]
    fn twelve_schemes_on_five_networks_look_different() {
        let (schemes, networks) = (labels(12), labels(5));
        let points: Vec<Vec<String>> = schemes
            .iter()
            .flat_map(|scheme| networks.iter().map(|network| vec![network.clone(), scheme.clone()]))
            .collect();
        let points: Vec<&[String]> = points.iter().map(|point| &point[..]).collect();
        let mut looks = looks(&points, &[&networks, &schemes], &[0, 1], (Some(1), Some(0)));
        assert_eq!((looks[0].colour, looks[1].colour, looks[5].colour), (0, 0, 1));
        assert_eq!((looks[0].mark, looks[1].mark, looks[5].mark), (0, 1, 0));
        looks.sort_unstable_by_key(|look| (look.colour, look.dash, look.mark));
        looks.dedup();
        assert_eq!(looks.len(), 60);
    }

    #[test]
    fn a_point_alone_has_the_first_look() {
        assert_eq!(looks(&[&[]], &[], &[], (None, None)), [Look::default()]);
    }
}

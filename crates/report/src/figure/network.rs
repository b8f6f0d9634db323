//! The network of a point as a figure: links in the colour of their use, large networks as groups.

use std::fmt::Write;

use super::plot::{FONT, INK, Paper, QUIET, SMALL};
use super::{Chosen, FigureError, short};
use crate::links::{LinkUse, Map, MapNode};

/// Both columns of a page, in hundredths of an inch.
const WIDTH: f64 = 700.0;
/// Text that is smaller cannot be read on paper.
const LEAST_FONT: f64 = 5.0;
/// From unused to the end of the scale: lighter to darker, so that a print in grey shows the same order.
const RAMP: [[u8; 3]; 5] =
    [[0xd7, 0xdc, 0xe1], [0xf2, 0xcf, 0x7f], [0xec, 0x94, 0x43], [0xc9, 0x48, 0x1f], [0x7d, 0x1d, 0x12]];

impl Chosen<'_> {
    /// What the channels of one point did, on a drawing of its network.
    pub(super) fn network(&self, name: &str, title: &str) -> Result<String, FigureError> {
        let &[point] = &self.points[..] else {
            return Err(FigureError::NotOne {
                name: name.to_owned(),
                found: self.points.len(),
                axes: self.axes(),
            });
        };
        let Some(map) = self.report.map_of[point].map(|place| &self.report.maps[place]) else {
            let why = "neither the scenario nor the channels of the run describe a network that can be drawn";
            return Err(FigureError::Empty { name: name.to_owned(), why });
        };
        Ok(draw(title, map, &self.point(point).link_use, self.scale()))
    }

    /// The end of the scale in thousandths: one for all points of the report, so that figures can be compared.
    fn scale(&self) -> u16 {
        let used = self.report.points.iter().map(|point| &point.link_use);
        let most = used.flat_map(|used| {
            let bundles = used.bundles.iter().flat_map(|bundle| [bundle[1], bundle[3]]);
            used.use_permille.iter().copied().chain(bundles)
        });
        most.max().unwrap_or(0).max(10).next_multiple_of(100).min(1000)
    }
}

/// The colour of a use, of a scale's end.
fn colour(used: u16, full: u16) -> String {
    let at = f64::from(used.min(full)) / f64::from(full) * (RAMP.len() - 1) as f64;
    let low = (0..RAMP.len() - 2).rfind(|&place| (place + 1) as f64 <= at).map_or(0, |place| place + 1);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two bytes")]
    let mixed = RAMP[low].iter().zip(RAMP[low + 1]).map(|(&from, to)| {
        let (from, to) = (f64::from(from), f64::from(to));
        (from + (to - from) * (at - low as f64)).round() as u8
    });
    mixed.fold("#".to_owned(), |text, part| format!("{text}{part:02x}"))
}

fn draw(title: &str, map: &Map, used: &LinkUse, full: u16) -> String {
    let ratio = WIDTH / map.width;
    // A tree of many hosts is wide and flat; boxes keep the height that their text needs.
    let stretch =
        if map.tree && map.bundles.is_empty() { (0.5 * map.width / map.height).clamp(1.0, 1.5) } else { 1.0 };
    let place = |node: &MapNode| (node.x * ratio, node.y * ratio * stretch);
    let busiest = |number: u32| {
        let number = number as usize;
        match used.bundles.get(number) {
            Some(bundle) => bundle[1].max(bundle[3]),
            None => [number, number + 1]
                .iter()
                .filter_map(|&channel| used.use_permille.get(channel))
                .copied()
                .max()
                .unwrap_or(0),
        }
    };
    let mut paper = Paper::new(WIDTH);
    // The busiest last: they lie on top.
    let mut links: Vec<_> = map.links.iter().map(|&(a, b, _, number)| (busiest(number), a, b)).collect();
    links.sort_unstable();
    let thinner = (14.0 / (links.len() as f64).sqrt()).clamp(0.3, 1.0);
    let mut within = vec![None::<u16>; map.nodes.len()];
    for &(hot, a, b) in &links {
        if a == b {
            within[a] = within[a].max(Some(hot));
            continue;
        }
        let width = thinner * (0.5 + 1.7 * f64::from(hot) / f64::from(full));
        let width = (width * 100.0).round() / 100.0;
        paper.line(place(&map.nodes[a]), place(&map.nodes[b]), &colour(hot, full), width);
    }
    let is_crowded = map.nodes.len() > 400;
    for (node, within) in map.nodes.iter().zip(within) {
        draw_node(&mut paper, node, place(node), (ratio, is_crowded), within.map(|hot| (hot, full)));
    }
    for (text, x, y) in &map.titles {
        // A white outline keeps the text legible where links cross it.
        let _ = write!(paper.svg, "<g paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"3\">");
        paper.text((x * ratio, y * ratio + SMALL * 0.35), "start", SMALL, QUIET, text);
        paper.svg += "</g>\n";
    }
    let mut height = map.height * ratio * stretch + 12.0;
    draw_scale(&mut paper, height, full);
    height += FONT + 4.0;
    let note = if map.bundles.is_empty() {
        "Links: use of the busier direction.".to_owned()
    } else {
        let inner = if map.links.iter().any(|(a, b, ..)| a == b) {
            "; a box: the busiest link within the group"
        } else {
            ""
        };
        format!(
            "A line: the busiest of all links between two groups{inner}. ×: switches of a group; h: hosts."
        )
    };
    let note = format!(
        "{}. {note} Use: share of the time from the start of the run to the end of its load, mean over the seeds.",
        map.name
    );
    paper.finish(title, height, &note)
}

fn draw_node(
    paper: &mut Paper,
    node: &MapNode,
    (x, y): (f64, f64),
    (ratio, is_crowded): (f64, bool),
    within: Option<(u16, u16)>,
) {
    let Some(group) = &node.group else {
        let half = if is_crowded { 1.2 } else { 3.0 };
        let _ = if node.host {
            writeln!(
                paper.svg,
                "<circle class=\"host\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"{QUIET}\"/>",
                half * 0.6
            )
        } else {
            rect(paper, "switch", (x, y), (half, half), "#fff")
        };
        return;
    };
    let half =
        (group.width * ratio / 2.0, (group.height * ratio / 2.0).max(if node.host { 5.0 } else { 9.0 }));
    let fill = within.map_or_else(|| "#fff".to_owned(), |(hot, full)| colour(hot, full));
    let is_dark = within.is_some_and(|(hot, full)| u32::from(hot) * 2 > u32::from(full));
    let _ = rect(paper, "group", (x, y), half, &fill);
    let count = match (group.switches, group.hosts) {
        (0, hosts) => format!("{hosts} h"),
        (1, 0) => String::new(),
        (switches, 0) => format!("×{switches}"),
        (switches, hosts) => format!("×{switches}, {hosts} h"),
    };
    let font = |line: &str| (2.0 * half.0 / (0.6 * line.chars().count() as f64)).min(SMALL - 1.5);
    let lines = [group.label.as_str(), &count].into_iter();
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty() && font(line) >= LEAST_FONT).collect();
    for (i, line) in lines.iter().enumerate() {
        let font = (font(line) * 10.0).floor() / 10.0;
        let below = (i as f64 - (lines.len() as f64 - 1.0) / 2.0) * 8.5 + 0.35 * font;
        paper.text((x, y + below), "middle", font, if is_dark { "#fff" } else { INK }, line);
    }
}

fn rect(
    paper: &mut Paper,
    class: &str,
    (x, y): (f64, f64),
    half: (f64, f64),
    fill: &str,
) -> std::fmt::Result {
    writeln!(
        paper.svg,
        "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{fill}\" stroke=\"{QUIET}\" stroke-width=\"0.7\"/>",
        x - half.0,
        y - half.1,
        2.0 * half.0,
        2.0 * half.1
    )
}

/// The ramp with its ends.
fn draw_scale(paper: &mut Paper, y: f64, full: u16) {
    const STEPS: u16 = 40;
    let (from, step) = (30.0, 3.0);
    paper.text((from - 4.0, y + FONT * 0.35), "end", FONT, INK, "0%");
    for k in 0..STEPS {
        let _ = writeln!(
            paper.svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"8\" fill=\"{}\"/>",
            from + step * f64::from(k),
            y - 4.0,
            step + 0.2,
            colour(full * k / (STEPS - 1), full)
        );
    }
    let text = format!("{}% of the time in use", short(f64::from(full) / 10.0));
    paper.text((from + step * f64::from(STEPS) + 4.0, y + FONT * 0.35), "start", FONT, INK, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_from_the_first_to_the_last_of_the_ramp() {
        assert_eq!(
            (colour(0, 500), colour(500, 500), colour(900, 500)),
            ("#d7dce1".into(), "#7d1d12".into(), "#7d1d12".into())
        );
        // A quarter of the scale is the second colour, an eighth lies between.
        assert_eq!((colour(125, 500), colour(50, 400)), ("#f2cf7f".into(), "#e5d6b0".into()));
    }
}

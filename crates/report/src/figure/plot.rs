//! Figures drawn as SVG for a column of a paper: 3.3 inches wide, text of 8 points, numbers in full, keys beside the curves.

use std::fmt::Write;

use super::scale::{Scale, plain};
use crate::picture::escape;
use crate::style::{COLOURS, DASHES, Look, MARKS};

/// Width of a column, in hundredths of an inch.
const WIDTH: f64 = 330.0;
/// Eight points.
pub(super) const FONT: f64 = 11.0;
/// Notes below a figure.
pub(super) const SMALL: f64 = 9.5;
const ROW: f64 = 14.0;
pub(super) const INK: &str = "#1d2126";
pub(super) const QUIET: &str = "#5a626c";

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) look: Look,
    pub(crate) points: Vec<(f64, f64)>,
    /// Half the length of each point's whisker, if it has one.
    pub(crate) halves: Vec<Option<f64>>,
    /// Points with a mark.
    pub(crate) marked: Vec<usize>,
}

/// Which way an axis counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) is_log: bool,
    /// Ends of the axis, where the data do not say them.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// What stands at which value, instead of numbers.
    pub(crate) words: Vec<(f64, String)>,
}

impl Axis {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Axis { name: name.into(), is_log: false, low: None, high: None, words: Vec::new() }
    }
}

/// Curves over an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curves {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) curves: Vec<Curve>,
    /// What the reader must know of it: error bars, what is left out.
    pub(crate) note: String,
}

/// A bar with its name and value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) colour: usize,
    pub(crate) value: Option<f64>,
    /// Half the length of its whisker.
    pub(crate) half: Option<f64>,
    /// Another value, as an upright line.
    pub(crate) tick: Option<f64>,
    /// What stands behind it.
    pub(crate) text: String,
}

/// Bars, in groups with a heading each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bars {
    pub(crate) name: String,
    pub(crate) groups: Vec<(String, Vec<Bar>)>,
    pub(crate) note: String,
}

/// An estimate of a text's width by classes of letters, a little wider than in Helvetica, as another font may be substituted.
fn width(text: &str, font: f64) -> f64 {
    let of = |letter: char| match letter {
        'i' | 'j' | 'l' | '.' | ',' | '\'' | '|' | '·' | ':' => 0.33,
        'f' | 't' | 'r' | ' ' | '-' | '(' | ')' | '[' | ']' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '±' => 0.95,
        letter if letter.is_uppercase() => 0.74,
        _ => 0.63,
    };
    font * text.chars().map(of).sum::<f64>()
}

/// Words in lines of at most some width.
fn wrap(text: &str, font: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, font) + width(word, font) + 0.34 * font <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A text that is cut where it is too wide.
fn fitted(text: &str, font: f64, most: f64) -> String {
    if width(text, font) <= most {
        return text.to_owned();
    }
    let mut cut = String::new();
    for letter in text.chars() {
        if width(&cut, font) + width("…", font) + font * 0.6 > most {
            break;
        }
        cut.push(letter);
    }
    cut.push('…');
    cut
}

/// An SVG in the making. Writing to a string cannot fail.
pub(super) struct Paper {
    pub(super) svg: String,
    /// In hundredths of an inch.
    width: f64,
}

impl Paper {
    pub(super) fn new(width: f64) -> Self {
        Paper { svg: String::new(), width }
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: &str, width: f64) {
        let _ = writeln!(
            self.svg,
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>"
        );
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: &str, font: f64, fill: &str, text: &str) {
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{font}\" fill=\"{fill}\">{}</text>",
            escape(text)
        );
    }

    fn upright(&mut self, (x, y): (f64, f64), text: &str) {
        let _ = writeln!(
            self.svg,
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" font-size=\"{FONT}\" fill=\"{INK}\">{}</text>",
            escape(text)
        );
    }

    fn mark(&mut self, (x, y): (f64, f64), look: Look) {
        let _ = writeln!(
            self.svg,
            "<path class=\"mark\" d=\"{}\" fill=\"{}\" transform=\"translate({x:.1} {y:.1}) scale(3)\"/>",
            MARKS[look.mark], COLOURS[look.colour]
        );
    }

    fn stroke(&mut self, points: &[(f64, f64)], look: Look) {
        let mut path = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        let dashes = DASHES[look.dash].iter().map(|length| format!("{:.1}", f64::from(*length) * 0.7));
        let dashes = dashes.collect::<Vec<_>>().join(" ");
        let dashes =
            if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        let _ = writeln!(
            self.svg,
            "<path class=\"curve\" d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{dashes}/>",
            COLOURS[look.colour]
        );
    }

    fn key(&mut self, (x, y): (f64, f64), look: Look, name: &str) {
        self.stroke(&[(x, y), (x + KEY - 6.0, y)], look);
        self.mark((x + (KEY - 6.0) / 2.0, y), look);
        self.text((x + KEY, y + FONT * 0.35), "start", FONT, INK, name);
    }

    /// The whole figure with its note below.
    pub(super) fn finish(mut self, title: &str, mut height: f64, note: &str) -> String {
        for line in wrap(note, SMALL, self.width - 8.0) {
            height += SMALL * 1.25;
            self.text((4.0, height), "start", SMALL, QUIET, &line);
        }
        height += 6.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.2}in\" height=\"{:.2}in\" viewBox=\"0 0 {} {height:.0}\" \
             font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" role=\"img\" aria-labelledby=\"name\">\n\
             <title id=\"name\">{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
            self.width / 100.0,
            height / 100.0,
            self.width,
            escape(title),
            self.svg
        )
    }
}

/// A key's line with the room behind it.
const KEY: f64 = 30.0;

/// Draws curves. Keys stand to their right if there is room for a plot beside them, else above.
pub(crate) fn curves(title: &str, plot: &Curves) -> String {
    let mut paper = Paper::new(WIDTH);
    let keys: &[Curve] = if plot.curves.len() > 1 { &plot.curves } else { &[] };
    let widest = keys.iter().map(|curve| width(&curve.name, FONT)).fold(0.0, f64::max) + KEY + 4.0;
    let is_beside = !keys.is_empty() && widest <= 0.36 * WIDTH;
    let mut top = 8.0;
    if !keys.is_empty() && !is_beside {
        let mut at = 4.0;
        for curve in keys {
            let name = fitted(&curve.name, FONT, WIDTH - KEY - 8.0);
            let own = width(&name, FONT) + KEY + 10.0;
            if at > 4.0 && at + own > WIDTH {
                at = 4.0;
                top += ROW;
            }
            paper.key((at, top + 2.0), curve.look, &name);
            at += own;
        }
        top += ROW + 2.0;
    }
    let height = 150.0f64.max(if is_beside { keys.len() as f64 * ROW } else { 0.0 });
    let right = if is_beside { WIDTH - widest - 6.0 } else { WIDTH - 12.0 };
    let all = || plot.curves.iter().flat_map(|curve| &curve.points);
    let mut y = range(&plot.y, all().map(|point| point.1), whiskers(&plot.curves));
    (y.from, y.to) = (top + height, top);
    let y_ticks = y.ticks(6);
    let labels = y_ticks.iter().map(|tick| width(&plain(*tick), FONT)).fold(0.0, f64::max);
    let left = FONT + 10.0 + labels + 6.0;
    let mut x = range(&plot.x, all().map(|point| point.0), std::iter::empty());
    (x.from, x.to) = (left, right);
    for tick in &y_ticks {
        let at = y.at(*tick);
        paper.line((left, at), (right, at), "#e4e7ea", 0.7);
        paper.text((left - 5.0, at + FONT * 0.35), "end", FONT, INK, &plain(*tick));
    }
    let x_ticks: Vec<(f64, String)> = if plot.x.words.is_empty() {
        let mut wanted = 7;
        // As many as have room.
        loop {
            let ticks: Vec<(f64, String)> =
                x.ticks(wanted).into_iter().map(|tick| (tick, plain(tick))).collect();
            let room = ticks.windows(2).all(|pair| {
                let half = (width(&pair[0].1, FONT) + width(&pair[1].1, FONT)) / 2.0;
                x.at(pair[1].0) - x.at(pair[0].0) > half + 5.0
            });
            if room || wanted <= 2 {
                break ticks;
            }
            wanted -= 1;
        }
    } else {
        plot.x.words.clone()
    };
    let base = top + height;
    let mut until = f64::NEG_INFINITY;
    for (tick, label) in &x_ticks {
        let at = x.at(*tick);
        paper.line((at, base), (at, base + 4.0), QUIET, 0.8);
        let mut lines = label.lines();
        let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let half = width(first, FONT).max(width(second, SMALL)) / 2.0;
        // Labels that would run into the one before are left out; the tick stays.
        if at - half < until + 3.0 {
            continue;
        }
        until = at + half;
        paper.text((at, base + 6.0 + FONT), "middle", FONT, INK, first);
        paper.text((at, base + 8.0 + FONT + SMALL), "middle", SMALL, QUIET, second);
    }
    let has_second = x_ticks.iter().any(|(_, label)| label.contains('\n'));
    let below = if has_second { SMALL + 3.0 } else { 0.0 };
    paper.line((left, top), (left, base), QUIET, 0.8);
    paper.line((left, base), (right, base), QUIET, 0.8);
    paper.upright((FONT, top + height / 2.0), &plot.y.name);
    paper.text(((left + right) / 2.0, base + 2.0 * FONT + 10.0 + below), "middle", FONT, INK, &plot.x.name);
    for curve in &plot.curves {
        let points: Vec<(f64, f64)> = curve.points.iter().map(|(a, b)| (x.at(*a), y.at(*b))).collect();
        paper.stroke(&points, curve.look);
        for (i, half) in curve.halves.iter().enumerate().filter_map(|(i, half)| Some((i, (*half)?))) {
            let (a, b) = curve.points[i];
            let (high, low) = (y.at(b + half), y.at((b - half).max(y.low)));
            for (from, to) in [
                ((x.at(a), low), (x.at(a), high)),
                ((x.at(a) - 3.0, low), (x.at(a) + 3.0, low)),
                ((x.at(a) - 3.0, high), (x.at(a) + 3.0, high)),
            ] {
                paper.line(from, to, COLOURS[curve.look.colour], 0.9);
            }
        }
        for &i in &curve.marked {
            paper.mark(points[i], curve.look);
        }
    }
    if is_beside {
        for (i, curve) in keys.iter().enumerate() {
            paper.key((right + 8.0, top + ROW * (i as f64 + 0.5)), curve.look, &curve.name);
        }
    }
    paper.finish(title, base + 2.0 * FONT + 14.0 + below, &plot.note)
}

/// Both ends of all whiskers.
fn whiskers(curves: &[Curve]) -> impl Iterator<Item = f64> {
    curves.iter().flat_map(|curve| {
        let ends = curve.points.iter().zip(&curve.halves);
        ends.filter_map(|((_, y), half)| Some(y + (*half)?))
    })
}

/// An axis that holds all values.
fn range(axis: &Axis, values: impl Iterator<Item = f64>, more: impl Iterator<Item = f64>) -> Scale {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.chain(more) {
        (low, high) = (low.min(value), high.max(value));
    }
    let (low, high) = (axis.low.unwrap_or(low), axis.high.unwrap_or(high));
    let is_log = axis.is_log && low > 0.0 && high > low;
    // Something flat stands in the middle.
    let (low, high) = if high > low { (low, high) } else { (low - 1.0, low + 1.0) };
    Scale { low, high, is_log, from: 0.0, to: 1.0 }
}

/// Draws bars with their names before and their values behind them.
pub(crate) fn bars(title: &str, plot: &Bars) -> String {
    let mut paper = Paper::new(WIDTH);
    let all = || plot.groups.iter().flat_map(|(_, bars)| bars);
    let names = all().map(|bar| width(&bar.name, FONT)).fold(0.0, f64::max).min(0.36 * WIDTH);
    let (left, right) = (names + 10.0, WIDTH - 8.0);
    let end = |bar: &Bar| (bar.value.unwrap_or(0.0) + bar.half.unwrap_or(0.0)).max(bar.tick.unwrap_or(0.0));
    // Every bar leaves the room that the number behind it needs.
    let room = |bar: &Bar| (right - left - width(&bar.text, FONT) - 6.0).max(30.0);
    let high = all().map(|bar| end(bar) * (right - left) / room(bar)).fold(0.0, f64::max);
    let x =
        Scale { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, is_log: false, from: left, to: right };
    let mut y = 4.0;
    let begin = y;
    let mut rows = Paper::new(WIDTH);
    for (heading, bars) in &plot.groups {
        if !heading.is_empty() {
            y += ROW;
            rows.text((left, y - 2.0), "start", FONT, INK, heading);
            y += 2.0;
        }
        for bar in bars {
            let middle = y + ROW / 2.0;
            rows.text(
                (left - 5.0, middle + FONT * 0.35),
                "end",
                FONT,
                INK,
                &fitted(&bar.name, FONT, 0.36 * WIDTH),
            );
            if let Some(value) = bar.value {
                let _ = writeln!(
                    rows.svg,
                    "<rect class=\"bar\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"9\" fill=\"{}\"/>",
                    middle - 4.5,
                    x.at(value) - left,
                    COLOURS[bar.colour]
                );
                if let Some(half) = bar.half {
                    let (from, to) = (x.at((value - half).max(0.0)), x.at(value + half));
                    rows.line((from, middle), (to, middle), INK, 0.9);
                    rows.line((from, middle - 3.0), (from, middle + 3.0), INK, 0.9);
                    rows.line((to, middle - 3.0), (to, middle + 3.0), INK, 0.9);
                }
            }
            if let Some(tick) = bar.tick {
                rows.line((x.at(tick), middle - 6.0), (x.at(tick), middle + 6.0), INK, 1.6);
            }
            rows.text((x.at(end(bar)) + 5.0, middle + FONT * 0.35), "start", FONT, INK, &bar.text);
            y += ROW;
        }
        y += 3.0;
    }
    // Grid lines lie below the bars.
    let mut until = f64::NEG_INFINITY;
    for tick in x.ticks(5) {
        let at = x.at(tick);
        paper.line((at, begin), (at, y), "#e4e7ea", 0.7);
        let half = width(&plain(tick), FONT) / 2.0;
        if at - half >= until + 4.0 && at + half <= WIDTH {
            until = at + half;
            paper.text((at, y + FONT + 2.0), "middle", FONT, INK, &plain(tick));
        }
    }
    paper.svg += &rows.svg;
    paper.line((left, begin), (left, y), QUIET, 0.8);
    paper.text(((left + right) / 2.0, y + 2.0 * FONT + 6.0), "middle", FONT, INK, &plot.name);
    paper.finish(title, y + 2.0 * FONT + 10.0, &plot.note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve {
            name: name.to_owned(),
            look: Look::default(),
            points: points.to_vec(),
            halves: vec![None; points.len()],
            marked: vec![0],
        }
    }

    fn two(names: [&str; 2]) -> Curves {
        Curves {
            x: Axis::new("x [µs]"),
            y: Axis::new("y"),
            curves: names.map(|name| curve(name, &[(0.0, 1.0), (2_000_000.0, 3.0)])).to_vec(),
            note: "A note.".to_owned(),
        }
    }

    /// Left ends of all texts with these words.
    fn place(svg: &str, text: &str) -> (f64, f64) {
        let line = svg.lines().find(|line| line.ends_with(&format!(">{text}</text>"))).unwrap();
        let number = |name: &str| {
            let rest = line.split_once(&format!(" {name}=\"")).unwrap().1;
            rest.split_once('"').unwrap().0.parse::<f64>().unwrap()
        };
        (number("x"), number("y"))
    }

    #[test]
    fn keys_stand_beside_the_curves_or_above_them() {
        let svg = curves("title", &two(["ecmp", "spray"]));
        assert!(svg.contains("width=\"3.30in\"") && svg.contains("<title id=\"name\">title</title>"));
        let right_end = place(&svg, "2,000,000").0;
        assert!(place(&svg, "ecmp").0 > right_end, "beside the plot");
        assert!(place(&svg, "spray").1 > place(&svg, "ecmp").1);
        let long = "a scheme with quite a long name";
        let svg = curves("title", &two([long, "spray"]));
        let top = place(&svg, "3").1;
        assert!(place(&svg, long).1 < top, "above the plot");
        // One curve needs no key.
        let svg = curves(
            "title",
            &Curves { curves: vec![curve("alone", &[(0.0, 0.0), (1.0, 1.0)])], ..two(["", ""]) },
        );
        assert!(!svg.contains(">alone<"));
    }

    #[test]
    fn whiskers_are_drawn_within_the_plot() {
        let mut plot = two(["a", "b"]);
        plot.curves[0].halves[1] = Some(5.0);
        let drawn = |svg: &str| svg.matches("stroke-width=\"0.9\"").count();
        assert_eq!(drawn(&curves("title", &two(["a", "b"]))), 0);
        let svg = curves("title", &plot);
        assert_eq!(drawn(&svg), 3);
        assert!((place(&svg, "8").1 - 8.0 - FONT * 0.35).abs() < 0.1, "the axis ends with the whisker");
    }

    #[test]
    fn bars_leave_room_for_the_numbers_behind_them() {
        let bar = |value: f64| Bar {
            name: "a <scheme>".to_owned(),
            colour: 1,
            value: Some(value),
            half: Some(value / 2.0),
            tick: None,
            text: format!("{value} ± a long text"),
        };
        let plot = Bars {
            name: "job time [µs]".to_owned(),
            groups: vec![("load 0.5".to_owned(), vec![bar(1.0), bar(100.0)])],
            note: String::new(),
        };
        let svg = bars("title", &plot);
        assert_eq!(svg.matches("class=\"bar\"").count(), 2);
        assert!(svg.contains("a &lt;scheme&gt;") && svg.contains(">load 0.5<"));
        let text = "100 ± a long text";
        assert!(place(&svg, text).0 + width(text, FONT) <= WIDTH);
    }
}

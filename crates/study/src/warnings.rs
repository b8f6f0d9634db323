//! What is probably a mistake, told once for all that it is about.

/// Warnings with those that each is about. Two that differ in numbers only are one.
#[derive(Default)]
pub(crate) struct Warnings(Vec<Group>);

struct Group {
    /// The text without its numbers.
    shape: String,
    /// The first text.
    text: String,
    /// Whether the numbers differ.
    varies: bool,
    points: Vec<String>,
}

impl Warnings {
    /// Notes that a point gave these warnings.
    pub(crate) fn add(&mut self, warnings: &[String], point: &str) {
        for warning in warnings {
            let shape = shape(warning);
            match self.0.iter_mut().find(|group| group.shape == shape) {
                Some(group) => {
                    group.varies |= group.text != *warning;
                    if !group.points.iter().any(|known| known == point) {
                        group.points.push(point.to_owned());
                    }
                }
                None => self.0.push(Group {
                    shape,
                    text: warning.clone(),
                    varies: false,
                    points: vec![point.to_owned()],
                }),
            }
        }
    }

    /// Each with those of `all` points that it is about.
    pub(crate) fn of_points(self, all: usize) -> Vec<String> {
        /// As many names as a message can bear.
        const MOST: usize = 3;
        let told = self.0.into_iter().map(|Group { text, varies, points, .. }| {
            let count = points.len();
            let numbers = if varies { "; numbers of the first" } else { "" };
            match count {
                // A study of one point needs no names.
                _ if count == all && (!varies || all == 1) => text,
                _ if count == all => format!("{text} (all {all} points{numbers})"),
                _ => {
                    let more = if count > MOST { "; …" } else { "" };
                    let names = points[..count.min(MOST)].join("; ");
                    format!("{text} ({count} of {all} points: {names}{more}{numbers})")
                }
            }
        });
        told.collect()
    }

    /// Without those whose shape one of `known` has.
    pub(crate) fn without(mut self, known: &Warnings) -> Self {
        self.0.retain(|group| !known.0.iter().any(|other| other.shape == group.shape));
        self
    }
}

/// A text with every number as `#`.
fn shape(text: &str) -> String {
    let mut shape = String::with_capacity(text.len());
    for c in text.chars() {
        let is_number = c.is_ascii_digit() || (c == '.' && shape.ends_with('#'));
        match is_number {
            true if shape.ends_with('#') => {}
            true => shape.push('#'),
            false => shape.push(c),
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(given: &[(&str, &str)], all: usize) -> Vec<String> {
        let mut warnings = Warnings::default();
        given.iter().for_each(|(warning, point)| warnings.add(&[(*warning).to_owned()], point));
        warnings.of_points(all)
    }

    #[test]
    fn a_warning_is_told_once_with_its_points() {
        assert_eq!(texts(&[("a: b", "x"), ("a: b", "y"), ("a: b", "y")], 2), ["a: b"]);
        assert_eq!(texts(&[("a: b", "x")], 2), ["a: b (1 of 2 points: x)"]);
        let many = ["p", "q", "r", "s"].map(|point| ("a: b", point));
        assert_eq!(texts(&many, 9), ["a: b (4 of 9 points: p; q; r; …)"]);
    }

    #[test]
    fn numbers_alone_do_not_tell_warnings_apart() {
        let given = [("3 of 160 flows", "x"), ("12.5 of 160 flows", "y"), ("none", "y")];
        assert_eq!(
            texts(&given, 2),
            ["3 of 160 flows (all 2 points; numbers of the first)", "none (1 of 2 points: y)"]
        );
        assert_eq!(texts(&given[..2], 3), ["3 of 160 flows (2 of 3 points: x; y; numbers of the first)"]);
    }
}

//! Fields that have outlived their kind: written for one kind or preset, where another was chosen later.
//!
//! A file says `rate` and `k` of a fat tree, and `--set topology.kind=slim-fly` or the axis of a study makes it a Slim Fly. Both fields are
//! read as if the new kind had been written in the place of the old one. It has a rate, too; it has no `k`, which is left out and named.

use crate::document::Node;
use crate::source::{Problem, Problems};

/// What was read of a document, and what was left out of it on the way.
#[derive(Debug)]
pub struct Settled<T> {
    /// What was read.
    pub value: T,
    /// The document without what was left out.
    pub document: Node,
    /// The fields that were left out, each with the choice that has no such field, where it was written.
    pub left_out: Vec<Problem>,
}

/// Reads a document without those fields that are unknown only because another kind or preset was chosen after they were written.
///
/// # Errors
/// What else is wrong.
pub fn settle<T>(
    document: &Node,
    read: impl Fn(&Node) -> Result<T, Problems>,
) -> Result<Settled<T>, Problems> {
    let mut document = document.clone();
    let mut left_out = Vec::new();
    loop {
        let found = match read(&document) {
            Ok(value) => return Ok(Settled { value, document, left_out }),
            Err(found) => found,
        };
        let known = left_out.len();
        left_out.extend(found.0.iter().filter_map(|problem| leave_out(&mut document, problem)));
        // Reading stops at this many problems: without these, others may show.
        if left_out.len() == known {
            return Err(found);
        }
    }
}

/// Takes a field out that a later choice does not have.
fn leave_out(document: &mut Node, problem: &Problem) -> Option<Problem> {
    let path: Vec<&str> = problem.field.split('.').collect();
    let entry = document.entry_at(&path).filter(|_| problem.is_unknown_field)?;
    let message =
        format!("left out, as {} was chosen after it and has no such field", entry.outlived.as_ref()?);
    let note = Problem::new(problem.field.clone(), message).at(&entry.key_place);
    let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
    document.prune(&path).then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use crate::document::apply_override;
    use crate::source::Source;
    use netloom_units::kind::Kind;

    /// The scenario of a text after some overrides, and what is left out of it.
    fn changed(text: &str, overrides: &[&str]) -> Result<(Scenario, Vec<String>), String> {
        let mut document = Node::parse(&Source::new("s.toml", text)).unwrap();
        overrides.iter().for_each(|change| apply_override(&mut document, change).unwrap());
        let settled = Scenario::settle(&document).map_err(|problems| problems.to_string())?;
        assert_eq!(Scenario::read(&document).as_ref(), Ok(&settled.value));
        assert!(Scenario::settle(&settled.document).unwrap().left_out.is_empty());
        Ok((settled.value, settled.left_out.iter().map(Problem::to_string).collect()))
    }

    /// What another kind or preset makes of a file is what the file says with that one word in the place of the old one, less the fields
    /// that are named.
    #[test]
    fn another_kind_is_another_word_in_the_file() {
        let cases: [(&str, &str, &str, &[&str]); 9] = [
            (
                "topology = { kind = 'fat-tree', k = 4, rate = '100Gbps', latency = '7ns' }",
                "topology.kind=slim-fly",
                "topology = { kind = 'slim-fly', rate = '100Gbps', latency = '7ns' }",
                &["topology.k"],
            ),
            (
                "topology = { k = 4, rate = '100Gbps' }",
                "topology.kind=fat-tree",
                "topology = { kind = 'fat-tree', k = 4, rate = '100Gbps' }",
                &[],
            ),
            (
                "transport = { preset = 'roce', mtu = '1KiB', header = '40B', congestion = { alpha_timer = '9us' } }",
                "transport.preset=tcp",
                "transport = { preset = 'tcp', mtu = '1KiB', header = '40B', congestion = {} }",
                &["transport.congestion.alpha_timer"],
            ),
            ("transport = 'roce'", "transport.preset=tcp", "transport = 'tcp'", &[]),
            (
                "routing = { preset = 'letflow', flow_timeout = '9us', granularity = { gap = '7us' } }",
                "routing=ecmp",
                "routing = { preset = 'ecmp', flow_timeout = '9us', granularity = {} }",
                &["routing.granularity.gap"],
            ),
            (
                "routing = { preset = 'fatpaths', selector = { construction = { kind = 'spain', paths = 3 } } }",
                "routing.selector.construction.kind=past",
                "routing = { preset = 'fatpaths', selector = { construction = 'past' } }",
                &["routing.selector.construction.paths"],
            ),
            (
                "workload = { kind = 'incast', senders = 3, size = '1KiB', start_jitter = '1us' }",
                "workload={kind=\"permutation\"}",
                "workload = { kind = 'permutation', size = '1KiB', start_jitter = '1us' }",
                &["workload.senders"],
            ),
            (
                "workload = { kind = 'mix', parts = [{ kind = 'incast', senders = 3, size = '1KiB', name = 'a' }] }",
                "workload.parts.0.kind=permutation",
                "workload = { kind = 'mix', parts = [{ kind = 'permutation', size = '1KiB', name = 'a' }] }",
                &["workload.parts.0.senders"],
            ),
            (
                "fabric = { buffer = '1MB', queue = { kind = 'trimming', control_weight = 3 } }",
                "fabric.queue=tail-drop",
                "fabric = { buffer = '1MB', queue = 'tail-drop' }",
                &["fabric.queue.control_weight"],
            ),
        ];
        for (text, change, expected, left_out) in cases {
            let (scenario, notes) = changed(text, &[change]).unwrap_or_else(|it| panic!("{text}: {it}"));
            assert_eq!(scenario, changed(expected, &[]).unwrap().0, "{text} {change}");
            let fields: Vec<&str> = notes.iter().map(|note| note.split(':').next().unwrap()).collect();
            assert_eq!(fields, left_out, "{text} {change}");
        }
        let (_, notes) = changed(cases[0].0, &[cases[0].1]).unwrap();
        assert_eq!(
            notes,
            [
                "topology.k: left out, as topology.kind = \"slim-fly\" was chosen after it and has no such field"
            ]
        );
    }

    /// A preset is a point of a product, and a later one is another point; what is no choice on one of its axes stays.
    #[test]
    fn a_later_preset_chooses_on_every_axis() {
        let file = "transport = { preset = 'roce', mtu = '1KiB', congestion = { kind = 'swift', base_delay = '9us' }, reliability = 'go-back-n' }\n\
                    routing = { preset = 'ecmp', placement = 'ingress', selector = { kind = 'drill', samples = 3 }, flow_timeout = '9us' }";
        let (scenario, notes) = changed(file, &["transport=tcp", "routing.preset=spray"]).unwrap();
        let expected = "transport = { preset = 'tcp', mtu = '1KiB' }\nrouting = { preset = 'spray', flow_timeout = '9us' }";
        assert_eq!(scenario, changed(expected, &[]).unwrap().0);
        let own = |field: &str, what: &str, by: &str| {
            format!("{field}: string \"{what}\" is left out, as {by} was chosen after it and brings its own")
        };
        let (spray, tcp) = ("routing.preset = \"spray\"", "transport.preset = \"tcp\"");
        let no_field = |field: &str, by: &str| {
            format!("{field}: left out, as {by} was chosen after it and has no such field")
        };
        let expected = [
            own("routing.placement", "ingress", spray),
            own("routing.selector", "drill", spray),
            own("transport.reliability", "go-back-n", tcp),
            own("transport.congestion", "swift", tcp),
            no_field("transport.congestion.base_delay", tcp),
            no_field("routing.selector.samples", spray),
        ];
        assert_eq!(notes, expected);
        // What is chosen on an axis afterwards holds.
        let (scenario, _) = changed(file, &["transport=tcp", "transport.congestion=cubic"]).unwrap();
        assert_eq!(scenario.transport.congestion.name(), "cubic");
        // What both choose needs no word, and its fields stay.
        let file = "transport = { preset = 'roce', congestion = { kind = 'dcqcn', alpha_timer = '9us' } }";
        let (scenario, notes) = changed(file, &["transport.preset=irn"]).unwrap();
        assert_eq!(
            scenario,
            changed("transport = { preset = 'irn', congestion = { alpha_timer = '9us' } }", &[]).unwrap().0
        );
        assert_eq!(notes, Vec::<String>::new());
    }

    #[test]
    fn only_what_was_written_before_is_left_out() {
        let tree = "topology = { kind = 'fat-tree', k = 4 }";
        for (text, changes) in [
            (tree, &["topology.kind=slim-fly", "topology.k=4"][..]),
            (tree, &["topology.k=4", "topology.kind=slim-fly"]),
            ("topology = { kind = 'slim-fly', k = 4 }", &["topology.kind=slim-fly"]),
        ] {
            let problem = changed(text, changes).unwrap_err();
            assert!(problem.contains("topology.k: unknown field `k` of `slim-fly`"), "{problem}");
        }
        // A value that the new kind has no use for is wrong where it is written, as it would be in the file.
        let problem =
            changed("topology = { kind = 'hyperx', dims = 3 }", &["topology.kind=nonsense"]).unwrap_err();
        assert!(problem.contains("there is no topology `nonsense`"), "{problem}");
    }

    #[test]
    fn more_fields_than_problems_are_told_at_once_are_left_out() {
        let fields: String = (0..40).map(|i| format!("f{i} = 1\n")).collect();
        let (_, notes) = changed(&format!("[topology]\n{fields}"), &["topology.kind=slim-fly"]).unwrap();
        assert_eq!(notes.len(), 40);
    }
}

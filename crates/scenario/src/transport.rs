//! Reading the transport table: a preset, what the user changes of it, or a point of the product spelt out.

use netloom_transport::{Transport, TransportOptions, preset};

use crate::document::Node;
use crate::preset::Presets;
use crate::section::Section;
use crate::source::Problem;

/// The presets of `[transport]`.
pub(crate) fn presets() -> Presets<Transport> {
    Presets {
        path: "transport",
        names: preset::PRESETS.iter().map(|preset| preset.name).collect(),
        expand: |name| preset::find(name).map(|preset| preset.transport()),
        axes: ["reliability", "congestion", "shaping"],
    }
}

/// Reads `[transport]`: the preset is expanded and the other fields are set over it.
pub(crate) fn read_transport(node: Option<&Node>, problems: &mut Vec<Problem>) -> Option<Transport> {
    let complete = presets().complete(node, problems)?;
    let mut section = Section::new(&complete, "transport", problems)?;
    section.name("preset");
    let reliability = section.required("reliability");
    let congestion = section.required("congestion");
    let shaping = section.required("shaping");
    let options: Option<TransportOptions> = section.rest();
    Some(Transport {
        options: options?,
        reliability: reliability?,
        congestion: congestion?,
        shaping: shaping?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Problems, Source};
    use netloom_transport::reliability::selective_repeat::SelectiveRepeat;
    use netloom_transport::{Congestion, Reliability};

    fn transport(text: &str) -> Result<Transport, String> {
        let root = Node::parse(&Source::new("s.toml", text)).unwrap();
        let mut problems = Vec::new();
        match read_transport(root.at(["transport"]), &mut problems) {
            Some(transport) if problems.is_empty() => Ok(transport),
            _ => Err(Problems(problems).to_string()),
        }
    }

    #[test]
    fn a_preset_expands_to_its_point_of_the_product() {
        assert_eq!(transport(""), Ok(Transport::default()));
        for preset in preset::PRESETS {
            let table = format!("[transport]\npreset = \"{}\"\n", preset.name);
            assert_eq!(transport(&table), Ok(preset.transport()));
            assert_eq!(transport(&format!("transport = \"{}\"\n", preset.name)), Ok(preset.transport()));
        }
    }

    #[test]
    fn fields_change_the_preset() {
        let text = "[transport]\npreset = \"tcp\"\nreliability = { reorder_threshold = 7 }\ncongestion = \"dctcp\"\n";
        let changed = transport(text).unwrap();
        let expected = SelectiveRepeat { reorder_threshold: 7, rack: false, sack: true };
        assert_eq!(changed.reliability, Reliability::SelectiveRepeat(expected));
        assert_eq!(changed.congestion, Congestion::Dctcp(Default::default()));
        assert_eq!(changed.options, preset::find("tcp").unwrap().transport().options);
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let problem = transport("[transport]\npreset = \"dctcpp\"\n").unwrap_err();
        assert!(
            problem.starts_with("s.toml:2:10: transport.preset: there is no preset `dctcpp`"),
            "{problem}"
        );
        assert!(problem.contains("did you mean `dctcp`?"), "{problem}");
        let problem = transport("[transport]\npaced = true\n").unwrap_err();
        assert!(problem.starts_with("s.toml:2:1: transport.paced: unknown field `paced`"), "{problem}");
        assert!(transport("transport = 3\n").unwrap_err().contains("expected a table, found number 3"));
    }
}

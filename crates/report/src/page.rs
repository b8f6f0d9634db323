//! The page as one HTML file: style, data, chart library and script, nothing to load.

use crate::picture::escape;
use crate::report::Report;

const PAGE: &str = include_str!("../page/report.html");
const STYLE: &str = include_str!("../page/report.css");
const SCRIPT: &str = include_str!("../page/report.js");
/// Apache ECharts, minified; build.rs finds it.
const CHARTS: &str = include_str!(concat!(env!("OUT_DIR"), "/echarts.js"));

/// Puts the parts together.
pub(crate) fn html(report: &Report, title: &str) -> String {
    // Numbers are finite or absent, and map keys are strings: this cannot fail.
    let data = serde_json::to_string(report).unwrap_or_default();
    let mut html = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + CHARTS.len() + data.len());
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        html += before;
        match name {
            "title" => html += &escape(title),
            "style" => html += STYLE,
            // A text in the data must not end the element that holds it.
            "data" => html += &data.replace('<', "\\u003c"),
            "charts" => html += CHARTS,
            "script" => html += SCRIPT,
            other => unreachable!("the page has no part `{other}`"),
        }
        rest = after;
    }
    html + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call takes only some ten thousand arguments: `Math.max(...values)` over the channels of a large network left the page blank.
    #[test]
    fn no_call_takes_data_as_its_arguments() {
        for function in ["Math.max(", "Math.min(", ".push(", ".append(", ".concat("] {
            for call in SCRIPT.split(function).skip(1) {
                let arguments = call.split_once(')').map_or(call, |(arguments, _)| arguments);
                assert!(!arguments.contains("..."), "{function}{arguments})");
            }
        }
    }

    #[test]
    fn nothing_in_the_scripts_ends_their_element() {
        for script in [CHARTS, SCRIPT] {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
        assert!(CHARTS.contains("Apache Software Foundation"), "the licence stands in the library");
    }
}

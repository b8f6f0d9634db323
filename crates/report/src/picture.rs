//! A network as an SVG: nodes with their names, links in the colour of their tier.
//!
//! The picture follows the reader's light or dark mode, and every node and link has a tooltip.

use std::fmt::Write;

use netloom_topology::{Link, Network};

use crate::groups::{Group, Grouped};
use crate::layout::{Layout, Shape};
use crate::links::{MOST_HOSTS, MOST_SWITCHES};

/// Colours of tiers that can be told apart with any kind of colour vision (Okabe and Ito, Color Universal Design, 2008),
/// without the yellow, which is lost on white.
const COLOURS: [&str; 6] = ["#8a8a8a", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"];

/// Draws a network: trees in rows, groups of switches on a circle, others as one circle.
///
/// Networks of more than 600 switches or 1,200 hosts are drawn as groups: pods, planes, groups of a Dragonfly or blocks of switches, with
/// their counts.
pub fn draw(network: &Network) -> String {
    if network.switches() > MOST_SWITCHES || network.hosts() > MOST_HOSTS {
        return draw_groups(network, &Grouped::of(network, None));
    }
    let layout = Layout::of(network);
    let legend = legend(network, "");
    let style = style(network, network.links().len(), layout.switch_room);
    let mut svg = opening(network, layout.size, &legend, &style);
    for link in network.links() {
        draw_link(&mut svg, network, &layout, link);
    }
    svg += "</g>\n<g class=\"nodes\">\n";
    for node in 0..network.nodes() {
        draw_node(&mut svg, network, &layout, node);
    }
    svg += "</g>\n";
    draw_legend(&mut svg, &legend, layout.size.1);
    svg += "</svg>\n";
    svg
}

/// Draws a network of planes, or one whose leaf switches belong to `rails` in turn, as groups: planes side by side, and the leaf switches of each by rail.
pub fn draw_planes(network: &Network, rails: Option<u32>) -> String {
    draw_groups(network, &Grouped::of(network, rails))
}

/// The beginning of a picture, up to its links. Below it there is room for the legend.
fn opening(network: &Network, (width, height): (f64, f64), legend: &[LegendLine], style: &str) -> String {
    let below = 22.0 * legend.len() as f64 + 44.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {:.0}\" width=\"{width:.0}\" role=\"img\" \
         aria-labelledby=\"name\">\n<title id=\"name\">{}</title>\n<style>{style}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n<g class=\"links\">\n",
        height + below,
        escape(network.name())
    )
}

/// Groups as boxes with their counts, bundles the thicker the more links they have.
fn draw_groups(network: &Network, grouped: &Grouped) -> String {
    let legend = legend(network, " (drawn as groups)");
    let mut svg = opening(network, grouped.size, &legend, &style(network, grouped.bundles.len(), 30.0));
    let most = grouped.bundles.iter().map(|bundle| bundle.links).max().unwrap_or(1);
    for bundle in grouped.bundles.iter().filter(|bundle| bundle.a != bundle.b) {
        let (a, b) = (&grouped.groups[bundle.a], &grouped.groups[bundle.b]);
        let _ = writeln!(
            svg,
            "<line class=\"t{}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" style=\"stroke-width:{:.1}\">\
             <title>{} – {}: {} links, {}</title></line>",
            bundle.tier,
            a.at.0,
            a.at.1,
            b.at.0,
            b.at.1,
            0.6 + 2.4 * f64::from(bundle.links) / f64::from(most),
            escape(&a.name),
            escape(&b.name),
            bundle.links,
            escape(&network.tiers()[usize::from(bundle.tier)])
        );
    }
    svg += "</g>\n<g class=\"nodes\">\n";
    for group in &grouped.groups {
        draw_group(&mut svg, network, grouped, group);
    }
    for title in &grouped.titles {
        let _ = writeln!(
            svg,
            "<text class=\"legend\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            title.at.0,
            title.at.1,
            escape(&title.text)
        );
    }
    svg += "</g>\n";
    draw_legend(&mut svg, &legend, grouped.size.1);
    svg += "</svg>\n";
    svg
}

fn draw_group(svg: &mut String, network: &Network, grouped: &Grouped, group: &Group) {
    let ((x, y), (half_width, half_height)) = (group.at, group.half);
    let own = grouped.bundles.iter().filter(|bundle| {
        bundle.a == bundle.b && std::ptr::eq(&raw const grouped.groups[bundle.a], &raw const *group)
    });
    let within: String = own
        .map(|bundle| {
            format!(", {} links {} within", bundle.links, network.tiers()[usize::from(bundle.tier)])
        })
        .collect();
    let counts = [(group.switches, "switches"), (group.hosts, "hosts")];
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let title = format!("{}: {}{within}", group.name, counts.collect::<Vec<_>>().join(", "));
    let _ = writeln!(
        svg,
        "<rect class=\"switch\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\"><title>{}</title></rect>",
        x - half_width,
        y - half_height,
        2.0 * half_width,
        2.0 * half_height,
        escape(&title)
    );
    let count = match (group.switches, group.hosts) {
        (0, hosts) => hosts.to_string(),
        (switches, 0) => format!("×{switches}"),
        (switches, hosts) => format!("×{switches}, {hosts} h"),
    };
    let lines: Vec<&str> =
        [group.label.as_str(), &count].into_iter().filter(|line| !line.is_empty()).collect();
    for (i, line) in lines.iter().enumerate() {
        let offset = (i as f64 - (lines.len() as f64 - 1.0) / 2.0) * 12.0;
        // What is long gets smaller, so that it stays within its box.
        let font = (2.0 * half_width / (0.6 * line.chars().count().max(1) as f64)).min(11.0);
        let _ = writeln!(
            svg,
            "<text class=\"name\" style=\"font-size:{font:.1}px\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            y + offset,
            escape(line)
        );
    }
}

fn draw_legend(svg: &mut String, legend: &[LegendLine], height: f64) {
    for (i, line) in legend.iter().enumerate() {
        let y = height + 22.0 * i as f64;
        if let Some(tier) = line.tier {
            let _ = writeln!(
                svg,
                "<line class=\"t{tier} key\" x1=\"40\" x2=\"64\" y1=\"{y:.0}\" y2=\"{y:.0}\"/>"
            );
        }
        let x = if line.tier.is_some() { 74 } else { 40 };
        let class = if i == 0 { "heading" } else { "legend" };
        let _ = writeln!(
            svg,
            "<text class=\"{class}\" x=\"{x}\" y=\"{:.0}\">{}</text>",
            y + 4.0,
            escape(&line.text)
        );
    }
}

/// Lines get thinner and paler where there are many of them.
fn style(network: &Network, lines: usize, room: f64) -> String {
    let crowd = lines as f64;
    let opacity = (14.0 / crowd.sqrt()).clamp(0.25, 0.9);
    let stroke = (20.0 / crowd.sqrt()).clamp(0.5, 1.6);
    let font = (room * 0.34).clamp(6.0, 13.0);
    let mut css = format!(
        "\n.paper{{fill:#fff}}text{{font-family:system-ui,sans-serif;fill:#222}}\
         .heading{{font-size:15px;font-weight:600}}.legend{{font-size:13px}}\
         .switch{{fill:#fff;stroke:#444;stroke-width:1.2}}.host{{fill:#777}}\
         .name{{font-size:{font:.1}px;text-anchor:middle;dominant-baseline:central}}\
         .links line{{stroke-width:{stroke:.2};stroke-opacity:{opacity:.2}}}.key{{stroke-width:3}}\n"
    );
    for (tier, _) in network.tiers().iter().enumerate() {
        let _ = write!(css, ".t{tier}{{stroke:{}}}", COLOURS[tier % COLOURS.len()]);
    }
    css += "\n@media (prefers-color-scheme:dark){.paper{fill:#16181d}text{fill:#ddd}\
            .switch{fill:#16181d;stroke:#bbb}.host{fill:#999}}\n";
    css
}

fn draw_link(svg: &mut String, network: &Network, layout: &Layout, link: &Link) {
    let (Some(a), Some(b)) = (layout.places[link.a as usize], layout.places[link.b as usize]) else {
        return;
    };
    let _ = writeln!(
        svg,
        "<line class=\"t{}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"><title>{} – {}, {}, {}</title></line>",
        link.tier,
        a.0,
        a.1,
        b.0,
        b.1,
        network.node_name(link.a),
        network.node_name(link.b),
        escape(&network.tiers()[usize::from(link.tier)]),
        link.rate
    );
}

fn draw_node(svg: &mut String, network: &Network, layout: &Layout, node: u32) {
    let Some((x, y)) = layout.places[node as usize] else { return };
    let name = network.node_name(node);
    if network.is_host(node) {
        let radius = (layout.host_room * 0.36).clamp(0.8, 4.0);
        let _ = writeln!(
            svg,
            "<circle class=\"host\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"><title>{name}</title></circle>"
        );
        if layout.shape == Shape::Rows && layout.host_room >= 24.0 {
            let _ = writeln!(svg, "<text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\">{name}</text>", y + 14.0);
        }
        return;
    }
    let half = (layout.switch_room * 0.36).clamp(1.5, 15.0);
    let _ = writeln!(
        svg,
        "<rect class=\"switch\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"><title>{name}</title></rect>",
        x - half,
        y - half,
        2.0 * half,
        2.0 * half
    );
    // Names where they can be read.
    if layout.switch_room >= 18.0 {
        let _ = writeln!(svg, "<text class=\"name\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>");
    }
}

/// One line below the picture.
struct LegendLine {
    tier: Option<usize>,
    text: String,
}

fn legend(network: &Network, how: &str) -> Vec<LegendLine> {
    let (hosts, switches) = (network.hosts(), network.switches());
    let size = format!("{}, {switches} switches, {} links{how}", network.name(), network.links().len());
    let size = if size.contains(&format!("{hosts} hosts")) { size } else { format!("{hosts} hosts, {size}") };
    let mut lines = vec![LegendLine { tier: None, text: size }];
    for (tier, name) in network.tiers().iter().enumerate() {
        let of_tier: Vec<&Link> =
            network.links().iter().filter(|link| usize::from(link.tier) == tier).collect();
        let (Some(slowest), Some(fastest)) =
            (of_tier.iter().map(|link| link.rate).min(), of_tier.iter().map(|link| link.rate).max())
        else {
            continue;
        };
        let rate = if slowest == fastest { slowest.to_string() } else { format!("{slowest} to {fastest}") };
        lines.push(LegendLine {
            tier: Some(tier),
            text: format!("{name}: {} links of {rate}", of_tier.len()),
        });
    }
    lines
}

/// Text as it stands in XML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::network;

    fn count(svg: &str, what: &str) -> usize {
        svg.matches(what).count()
    }

    #[test]
    fn every_node_and_link_is_drawn_once() {
        let network = network("fat-tree", json!({ "k": 4 }));
        let svg = draw(&network);
        assert_eq!(count(&svg, "class=\"host\""), 16);
        assert_eq!(count(&svg, "class=\"switch\""), 20);
        assert_eq!(count(&svg, "<title>h0 – s0, host, "), 1);
        let links = network.links().len() + network.tiers().len();
        assert_eq!(count(&svg, "<line "), links, "links and the legend's keys");
        for tier in network.tiers() {
            assert!(svg.contains(&format!(">{tier}: ")), "{tier} is missing in the legend");
        }
    }

    #[test]
    fn thousands_of_hosts_are_drawn_as_groups_with_their_counts() {
        let svg = draw(&network("fat-tree", json!({ "k": 32 })));
        // 16 planes of cores, 32 pods of aggregation and edge switches, and their hosts.
        assert_eq!(count(&svg, "class=\"switch\""), 16 + 32 + 32 + 32);
        assert!(svg.contains(">256<") && svg.contains("<title>pod 3: 16 switches</title>"));
        assert!(
            svg.contains("hosts of pod 3: 256 hosts") && svg.contains("pod 0 – pod 0: 256 links, edge-agg")
        );
        assert_eq!(count(&svg, "drawn as groups"), 1);
        assert_eq!(count(&svg, "<line "), 32 + 32 + 16 * 32 + 3, "bundles and the legend's keys");
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(escape("a<b & \"c\">"), "a&lt;b &amp; &quot;c&quot;&gt;");
    }
}

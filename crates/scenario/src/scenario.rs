//! The checked scenario: every axis with its kind and parameters.

use std::path::PathBuf;

use netloom_fabric::{Fabric, FabricOptions};
use netloom_routing::{Routing, preset};
use netloom_sim::{Fast, Fault, Measure};
use netloom_topology::{FatTree, Topology};
use netloom_transport::Transport;
use netloom_workload::{Idle, Job, Pattern, Permutation, Servers, TraceFiles, Workload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cluster;
use crate::detail::Detail;
use crate::document::{Node, Value};
use crate::read::read as read_value;
use crate::routing::{self, read_routing};
use crate::section::{Section, report};
use crate::settle::{Settled, settle};
use crate::source::{Problem, Problems};
use crate::transport::{self, read_transport};

/// Whether it is the default, which is not written.
fn is_auto(fast: &Fast) -> bool {
    *fast == Fast::Auto
}

/// A scenario whose every field is known, in range by itself, and spelt right.
///
/// Whether the axes fit each other (a workload on its network, a selector at its placement) is checked when the
/// simulation is made ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of the scenario, and of its outcome folder.
    pub name: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// What of the run is skipped.
    pub fast: Fast,
    /// The level of detail.
    pub detail: Detail,
    /// What is wired to what.
    pub topology: Topology,
    /// The NICs of servers that have several; absent: each host of the network has one.
    pub servers: Option<Servers>,
    /// What a switch does.
    pub fabric: Fabric,
    /// Which way a packet goes.
    pub routing: Routing,
    /// What a host does.
    pub transport: Transport,
    /// Who sends what, when; with jobs, the traffic beside them.
    pub workload: Workload,
    /// Work with an end on ranks of its own.
    pub jobs: Vec<Job>,
    /// Links that are slow or gone.
    pub faults: Vec<Fault>,
    /// What to measure, and for how long.
    pub measure: Measure,
}

impl Default for Scenario {
    /// One permutation on Flowcut's 1024-host fat tree under ECMP.
    fn default() -> Self {
        Scenario {
            name: "scenario".to_owned(),
            seed: 1,
            fast: Fast::default(),
            detail: Detail::default(),
            topology: Topology::FatTree(FatTree::default()),
            servers: None,
            fabric: Fabric::default(),
            routing: preset::PRESETS[0].routing(),
            transport: Transport::default(),
            workload: Workload::new(Pattern::Permutation(Permutation::default())),
            jobs: Vec::new(),
            faults: Vec::new(),
            measure: Measure::default(),
        }
    }
}

/// The scenario as it is written, table by table.
#[derive(Serialize)]
struct Written<'a> {
    name: &'a str,
    seed: u64,
    #[serde(skip_serializing_if = "is_auto")]
    fast: Fast,
    #[serde(skip_serializing_if = "Detail::is_default")]
    detail: &'a Detail,
    topology: &'a Topology,
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<&'a Servers>,
    fabric: &'a Fabric,
    routing: &'a Routing,
    transport: &'a Transport,
    workload: &'a Workload,
    #[serde(skip_serializing_if = "<[Job]>::is_empty")]
    jobs: &'a [Job],
    faults: &'a [Fault],
    measure: &'a Measure,
}

impl Scenario {
    /// Reads and checks a scenario. What is not written is as in [`Scenario::default`]; a field that a kind or preset chosen after it does
    /// not have is left out.
    ///
    /// # Errors
    /// Everything that is wrong with it, as far as it can be checked field by field.
    pub fn read(document: &Node) -> Result<Self, Problems> {
        Self::settle(document).map(|settled| settled.value)
    }

    /// The same; also says what was left out.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn settle(document: &Node) -> Result<Settled<Self>, Problems> {
        let mut document = document.clone();
        let mut left_out = routing::presets().give_way(&mut document);
        left_out.extend(transport::presets().give_way(&mut document));
        let settled = settle(&document, Self::read_all)?;
        left_out.extend(settled.left_out);
        Ok(Settled { left_out, ..settled })
    }

    /// Reads every field of a document.
    fn read_all(document: &Node) -> Result<Self, Problems> {
        if let Some(field) =
            ["scenario", "analysis"].into_iter().find(|field| document.at([*field]).is_some())
        {
            let message = "this is a study, not a scenario";
            let problem = Problem::new("", message).at(&document.nearest_place([field]));
            return Err(problem.help("`netloom study FILE` runs it").into());
        }
        let mut default = Scenario::default();
        // Beside jobs there is nothing, unless something is written.
        let has_jobs = |jobs: &Node| !matches!(&jobs.value, Value::Array(jobs) if jobs.is_empty());
        if document.at(["jobs"]).is_some_and(has_jobs) {
            default.workload = Workload::new(Pattern::Idle(Idle::default()));
        }
        let mut complete = Node::from_value("default", &default.written())?;
        // Routing schemes and transports start from their preset, not from the default.
        if let Some(table) = complete.as_table_mut() {
            table.remove("routing");
            table.remove("transport");
        }
        let mut own = document.clone();
        if let Some(cluster) = cluster::take(&mut own)? {
            complete.merge(cluster);
        }
        complete.merge(own);
        let complete = with_absolute_files(complete);
        let mut problems = Vec::new();
        match read(&complete, &mut problems) {
            Some(scenario) if problems.is_empty() => Ok(scenario),
            _ => Err(Problems::in_order(problems)),
        }
    }

    /// The scenario as TOML with every default filled in, those of its network too, and the routing preset expanded; reading it gives the
    /// same scenario.
    ///
    /// # Errors
    /// A value that TOML cannot express.
    pub fn to_toml(&self) -> Result<String, Problem> {
        let topology = self.topology.clone().with_defaults();
        Node::write("scenario", &Written { topology: &topology, ..self.written() })
    }

    /// The files that the scenario names, beside its own.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        if let Ok(mut document) = Node::from_value("scenario", &self.written()) {
            each_file(&mut document, &mut |node| files.extend(node.as_str().map(PathBuf::from)));
        }
        add_files_of_jobs(&self.workload.pattern, &mut files);
        self.jobs.iter().for_each(|job| add_files_of_jobs(&job.workload, &mut files));
        files
    }

    fn written(&self) -> Written<'_> {
        Written {
            name: &self.name,
            seed: self.seed,
            fast: self.fast,
            detail: &self.detail,
            topology: &self.topology,
            servers: self.servers.as_ref(),
            fabric: &self.fabric,
            routing: &self.routing,
            transport: &self.transport,
            workload: &self.workload,
            jobs: &self.jobs,
            faults: &self.faults,
            measure: &self.measure,
        }
    }
}

fn read(document: &Node, problems: &mut Vec<Problem>) -> Option<Scenario> {
    let mut root = Section::new(document, "", problems)?;
    let name = root.required_node("name");
    let seed = root.required("seed");
    let fast = root.value("fast", Fast::default());
    let detail = root.value("detail", Detail::default());
    let topology = root.required("topology");
    let servers = root.value("servers", None);
    let fabric = root.required_node("fabric");
    let routing = root.node("routing");
    let transport = root.node("transport");
    let workload = root.required("workload");
    let jobs = root.node("jobs");
    let faults = root.required_node("faults");
    let measure = root.required("measure");
    root.finish();
    let routing = read_routing(routing.as_ref(), problems);
    let fabric = fabric.and_then(|node| read_fabric(&node, problems));
    let transport = read_transport(transport.as_ref(), problems);
    let name = name.and_then(|node| read_name(&node, problems));
    let jobs = jobs.map_or(Some(Vec::new()), |node| read_list(&node, "jobs", problems));
    let faults = faults.and_then(|node| read_list(&node, "faults", problems));
    Some(Scenario {
        name: name?,
        seed: seed?,
        fast: fast?,
        detail: detail?,
        topology: topology?,
        servers: servers?,
        fabric: fabric?,
        routing: routing?,
        transport: transport?,
        workload: workload?,
        jobs: jobs?,
        faults: faults?,
        measure: measure?,
    })
}

/// The name is that of a folder, too.
fn read_name(node: &Node, problems: &mut Vec<Problem>) -> Option<String> {
    let is_plain = |name: &&str| !name.contains(['/', '\\', '\0']) && !matches!(*name, "" | "." | "..");
    let name = node.as_str().filter(is_plain);
    if name.is_none() {
        let message = format!("expected a name without slashes, found {}", node.describe());
        problems.push(Problem::new("name", message).at(&node.place));
    }
    name.map(str::to_owned)
}

fn read_fabric(node: &Node, problems: &mut Vec<Problem>) -> Option<Fabric> {
    let mut section = Section::new(node, "fabric", problems)?;
    let queue = section.required("queue");
    let flow_control = section.required("flow_control");
    let options: Option<FabricOptions> = section.rest();
    Some(Fabric { options: options?, queue: queue?, flow_control: flow_control? })
}

/// A list of tables, each of which is read for itself.
fn read_list<T: DeserializeOwned>(node: &Node, name: &str, problems: &mut Vec<Problem>) -> Option<Vec<T>> {
    let Value::Array(items) = &node.value else {
        let message = format!("expected a list of tables, found {}", node.describe());
        problems.push(Problem::new(name, message).at(&node.place).help(format!("write [[{name}]]")));
        return None;
    };
    let items: Vec<Option<T>> = items
        .iter()
        .enumerate()
        .map(|(i, item)| report(read_value(item, &format!("{name}.{i}")), problems))
        .collect();
    items.into_iter().collect()
}

/// Training jobs name a prefix, and files that name others.
fn add_files_of_jobs(pattern: &Pattern, files: &mut Vec<PathBuf>) {
    match pattern {
        Pattern::AstraSim(job) => {
            files.retain(|file| *file != job.traces);
            files
                .extend(job.all_files().into_iter().filter(|file| !files.contains(file)).collect::<Vec<_>>());
        }
        Pattern::Chakra(job) => {
            if let TraceFiles::Named(name) = &job.files {
                files.retain(|file| file != name);
                files.extend(job.all_files().into_iter().filter(|file| Some(file) != job.groups.as_ref()));
            }
        }
        Pattern::Mix(mix) => mix.parts.iter().for_each(|part| add_files_of_jobs(&part.pattern, files)),
        _ => {}
    }
}

/// A document whose file names are absolute, so that it means the same wherever it is read again.
pub fn with_absolute_files(mut document: Node) -> Node {
    each_file(&mut document, &mut Node::make_absolute);
    document
}

/// Visits the fields that hold the name of a file.
fn each_file(document: &mut Node, visit: &mut impl FnMut(&mut Node)) {
    for path in [&["topology", "path"][..], &["routing", "selector", "construction", "file"]] {
        if let Some(node) = document.at_mut(path) {
            visit(node);
        }
    }
    if let Some(workload) = document.at_mut(&["workload"]) {
        each_file_of_workload(workload, visit);
    }
    if let Some(Node { value: Value::Array(jobs), .. }) = document.at_mut(&["jobs"]) {
        for job in jobs {
            if let Some(node) = job.at_mut(&["placement", "file"]) {
                visit(node);
            }
            if let Some(workload) = job.at_mut(&["workload"]) {
                each_file_of_workload(workload, visit);
            }
        }
    }
}

fn each_file_of_workload(workload: &mut Node, visit: &mut impl FnMut(&mut Node)) {
    for path in [&["file"][..], &["size", "file"], &["groups"], &["traces"], &["system"], &["network_file"]] {
        if let Some(node) = workload.at_mut(path) {
            visit(node);
        }
    }
    match workload.at_mut(&["files"]) {
        Some(Node { value: Value::Array(files), .. }) => files.iter_mut().for_each(&mut *visit),
        Some(name) => visit(name),
        None => {}
    }
    if let Some(Node { value: Value::Array(parts), .. }) = workload.at_mut(&["parts"]) {
        parts.iter_mut().for_each(|part| each_file_of_workload(part, visit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_workload::Wiring;

    use crate::document::apply_override;
    use crate::source::Source;

    fn read(text: &str) -> Result<Scenario, Problems> {
        Scenario::read(&Node::parse(&Source::new("s.toml", text))?)
    }

    #[test]
    fn a_table_is_called_a_table() {
        let problems = read("[fabric]\necn = 5\n").unwrap_err().to_string();
        assert!(problems.contains("fabric.ecn: expected a table, found number `5`"), "{problems}");
    }

    #[test]
    fn an_empty_file_is_the_default_scenario() {
        assert_eq!(read(""), Ok(Scenario::default()));
    }

    #[test]
    fn what_explain_prints_reads_back_as_the_same_scenario() {
        for text in [
            "",
            "detail = \"flow\"\nseed = 7\n[topology]\nkind = \"fat-tree\"\nk = 8\nrate = \"100Gbps\"\n",
            "detail = { packets = { hosts = [0, \"h1\"] } }\n",
            "detail = { packets = { jobs = [\"a\"] } }\n",
            "[[faults]]\nkind = \"degrade\"\nlink_fraction = 0.01\n[[faults]]\nkind = \"cut\"\nlinks = 1\n[measure]\nwarm_up = \"1ms\"\n",
            "[routing]\npreset = \"fatpaths\"\nselector = { construction = \"spain\" }\n",
            "routing = \"flowcut-nic\"\n[transport]\nmtu = 1024\ncongestion = \"dctcp\"\n[fabric]\necn = { kmin = 1000, kmax = \"9KB\" }\n",
            "transport = \"dctcp\"\n",
            "[transport]\npreset = \"tcp\"\nshaping = \"paced\"\ncongestion = { ecn = false }\n",
            "[workload]\nkind = \"mix\"\nparts = [\"hotspot\", { kind = \"incast\", class = 3, name = \"io\", size = \"vl2\" }, { kind = \"mix\", parts = [\"bursty\"] }]\n",
            "[topology]\nkind = \"crossbar\"\n[workload]\nkind = \"incast\"\nranks = 12\nstart_jitter = \"1us\"\n",
            "[servers]\nnics = 4\nwiring = \"rail-optimised\"\n",
            "[servers]\nplanes = 2\ngpus = 8\n[servers.bond]\nport_selection = \"least-loaded\"\nfailover_after = \"1ms\"\n[servers.scale_up]\nrate = \"1Tbps\"\n",
            "[[jobs]]\nname = \"a\"\nplacement = { hosts = [3, \"h1\"] }\nworkload = \"permutation\"\n\
             [[jobs]]\nname = \"b\"\nranks = 4\nplacement = \"by-rail\"\nworkload = { kind = \"collective\" }\n\
             stragglers = [{ count = 1, factor = 1.5 }]\n",
        ] {
            let scenario = read(text).unwrap();
            let printed = scenario.to_toml().unwrap();
            let topology = scenario.topology.clone().with_defaults();
            assert_eq!(read(&printed), Ok(Scenario { topology, ..scenario }), "{printed}");
        }
    }

    #[test]
    fn a_table_without_kind_changes_the_default_kind() {
        let scenario = read("[topology]\nk = 4\n").unwrap();
        let expected = FatTree { k: Some(4), ..FatTree::default() };
        assert_eq!(scenario.topology, Topology::FatTree(expected));
    }

    #[test]
    fn problems_of_all_sections_are_reported_together() {
        let problems = read(
            "sede = 2\n[topology]\nkind = \"fat-treee\"\n[workload]\nkind = \"incast\"\nranked = 3\nplacement = \"left\"\n",
        )
        .unwrap_err()
        .to_string();
        for expected in [
            "s.toml:1:1: sede: unknown field `sede` (did you mean `seed`?",
            "s.toml:3:8: topology.kind: there is no topology `fat-treee` (did you mean `fat-tree`?",
            "s.toml:6:1: workload.ranked: unknown field `ranked` of `incast` (did you mean `ranks`?",
            "s.toml:7:13: workload.placement: there is no placement `left` (valid here: linear, random)",
        ] {
            assert!(problems.contains(expected), "{problems}");
        }
    }

    #[test]
    fn old_names_are_refused_with_the_new_ones() {
        for (text, old, new) in [
            ("routing = { ageing = \"1ms\" }", "ageing", "flow_timeout"),
            ("routing = { preset = \"letflow\", entries = 5 }", "entries", "max_flow_entries"),
            (
                "routing = { preset = \"flowcut\", granularity = { measures = \"every\" } }",
                "measures",
                "measured_at",
            ),
            ("routing = { preset = \"flowcut\", granularity = { stops = \"class\" } }", "stops", "pauses"),
            ("servers = { nics = 2, spread = \"stripe\" }", "spread", "nic_selection"),
            ("workload = { kind = \"worst-case\", draw = 2 }", "draw", "variant"),
            ("faults = [{ kind = \"cut\", share = 0.1 }]", "share", "link_fraction"),
            ("faults = [{ kind = \"loss\", share = 0.1, probability = 0.1 }]", "share", "link_fraction"),
            ("faults = [{ kind = \"degrade\", links = 1, fraction = 0.1 }]", "fraction", "rate_factor"),
            ("faults = [{ kind = \"cut\", links = 1, unreachable = \"signal\" }]", "signal", "notify-source"),
        ] {
            let problems = read(text).unwrap_err().to_string();
            assert!(problems.contains(&format!("`{old}` is called `{new}` now")), "{problems}");
        }
        // Another table's field of that name stays what it is.
        assert!(read("fabric.classes = [{}, { share = 60 }]").is_ok());
    }

    #[test]
    fn jobs_are_read_field_by_field_and_nothing_is_beside_them_by_default() {
        let job = |fields: &str| read(&format!("[[jobs]]\nname = \"a\"\nworkload = \"incast\"\n{fields}\n"));
        let scenario = job("").unwrap();
        assert_eq!(scenario.workload.pattern, Pattern::Idle(Idle::default()));
        assert_eq!((scenario.jobs.len(), scenario.jobs[0].repetitions), (1, 1));
        assert_eq!(read("jobs = []").unwrap().workload, Scenario::default().workload);
        for (fields, expected) in [
            (
                "placement = \"pakced\"",
                "jobs.0.placement: there is no placement `pakced` (did you mean `packed`?",
            ),
            (
                "placement = { host = [1] }",
                "jobs.0.placement.host: unknown field `host` (did you mean `hosts`?",
            ),
            (
                "placement = { hosts = [true] }",
                "jobs.0.placement.hosts.0: expected a host: its number, or its name",
            ),
            ("placement = 3", "jobs.0.placement: expected a placement: \"packed\", "),
            ("rank = 3", "jobs.0.rank: unknown field `rank` (did you mean `ranks`?"),
            (
                "stragglers = [{ factr = 2 }]",
                "jobs.0.stragglers.0.factr: unknown field `factr` (did you mean `factor`?",
            ),
        ] {
            let problems = job(fields).unwrap_err().to_string();
            assert!(problems.contains(expected), "{problems}");
        }
        assert!(read("jobs = 3").unwrap_err().to_string().contains("jobs: expected a list of tables"));
    }

    #[test]
    fn servers_are_absent_or_read_field_by_field() {
        assert_eq!(read("").unwrap().servers, None);
        let servers = read("servers = {}\n").unwrap().servers.unwrap();
        assert_eq!((servers.nics, servers.nic_selection), (8, netloom_workload::NicSelection::Stripe));
        let problem = read("[servers.scale_up]\nkind = \"switch\"\n").unwrap_err().to_string();
        assert!(
            problem
                .starts_with("s.toml:2:1: servers.scale_up.kind: unknown field `kind` (valid here: wiring, "),
            "{problem}"
        );
        let problems =
            read("[servers]\nrails = 2\nwiring = \"planes\"\nnic_selection = \"last-outstanding\"\n")
                .unwrap_err();
        for expected in [
            "s.toml:2:1: servers.rails: unknown field `rails` (valid here: nics, wiring, nic_selection, planes, ports, gpus, bond, scale_up)",
            "s.toml:3:10: servers.wiring: there is no wiring `planes` (valid here: side-by-side, rail-optimised)",
            "s.toml:4:17: servers.nic_selection: there is no nic selection `last-outstanding` (did you mean `least-outstanding`?",
        ] {
            assert!(problems.to_string().contains(expected), "{problems}");
        }
    }

    #[test]
    fn a_part_of_a_mix_goes_by_its_position() {
        let problems = read(
            "[workload]\nkind = \"mix\"\nload = 3\n[[workload.parts]]\nkind = \"incast\"\nsenderss = 3\n\
             [[workload.parts]]\nkind = \"poisson\"\nnam = \"x\"\nclass = -1\n[[workload.parts]]\nname = 3\n",
        )
        .unwrap_err()
        .to_string();
        for expected in [
            "s.toml:3:1: workload.load: unknown field `load` of `mix` (valid here: parts, ranks, placement, start_jitter, class)",
            "s.toml:6:1: workload.parts.0.senderss: unknown field `senderss` of `incast` (did you mean `senders`?",
            "s.toml:9:1: workload.parts.1.nam: unknown field `nam` of `poisson` (did you mean `name`?",
            "s.toml:10:9: workload.parts.1.class: expected a whole number from 0 to 255, found number `-1`",
            "s.toml:11:1: workload.parts.2: `kind` is missing",
            "s.toml:12:8: workload.parts.2.name: expected a string, found number `3`",
        ] {
            assert!(problems.contains(expected), "{problems}");
        }
        let problems =
            read("workload = { kind = \"mix\", parts = { kind = \"incast\" } }").unwrap_err().to_string();
        assert!(problems.contains("workload.parts: expected a list, found a table"), "{problems}");
        let problems = read("workload = { kind = \"mix\" }").unwrap_err().to_string();
        assert!(problems.contains("workload: `mix` needs `parts`"), "{problems}");
    }

    #[test]
    fn a_name_that_is_no_folder_is_refused() {
        for name in ["\"../up\"", "\"\"", "3"] {
            let problems = read(&format!("name = {name}\n")).unwrap_err().to_string();
            assert!(problems.starts_with("s.toml:1:8: name: expected a name without slashes"), "{problems}");
        }
    }

    #[test]
    fn a_fault_goes_by_its_position() {
        let problems =
            read("[[faults]]\nkind = \"cut\"\nlinks = 1\n[[faults]]\nkind = \"degrade\"\nshar = 0.1\n");
        let problems = problems.unwrap_err().to_string();
        assert!(
            problems.starts_with("s.toml:6:1: faults.1.shar: unknown field `shar` of `degrade`"),
            "{problems}"
        );
        let problems = read("[faults]\nkind = \"cut\"\n").unwrap_err().to_string();
        assert!(
            problems.contains("faults: expected a list of tables, found a table (write [[faults]])"),
            "{problems}"
        );
    }

    /// What is written reads back; what would not is not written.
    #[test]
    fn seeds_are_written_as_far_as_they_are_read() {
        for seed in [0, 1, i64::MAX as u64 - 1, i64::MAX as u64] {
            let scenario = Scenario { seed, ..Scenario::default() };
            assert_eq!(read(&scenario.to_toml().unwrap()).unwrap().seed, seed);
        }
        for seed in [1 << 63, u64::MAX] {
            let problem = Scenario { seed, ..Scenario::default() }.to_toml().unwrap_err();
            assert!(!problem.to_string().is_empty());
        }
    }

    #[test]
    fn a_seed_beyond_what_toml_can_write_is_refused() {
        let problems = read("seed = 99999999999999999999\n").unwrap_err().to_string();
        assert!(problems.contains("s.toml:1:8: the number 99999999999999999999 does not fit"), "{problems}");
        assert!(
            read("seed = -1\n")
                .unwrap_err()
                .to_string()
                .contains("seed: expected a whole number from 0 to 9223372036854775807, found number `-1`")
        );
    }

    #[test]
    fn an_override_is_pointed_at_in_its_own_text() {
        let mut document = Node::parse(&Source::new("s.toml", "")).unwrap();
        apply_override(&mut document, "topology.rate=200 Gbit").unwrap();
        let problems = Scenario::read(&document).unwrap_err().to_string();
        assert!(problems.starts_with("--set:1:15: topology.rate: expected a rate"), "{problems}");
    }

    #[test]
    fn file_names_start_from_the_folder_of_their_text() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.toml");
        std::fs::write(&file, "[topology]\nkind = \"edge-list\"\npath = \"net.txt\"\n").unwrap();
        let document = Node::parse(&Source::read(&file).unwrap()).unwrap();
        let printed = Scenario::read(&document).unwrap().to_toml().unwrap();
        assert!(printed.contains(&folder.path().join("net.txt").display().to_string()), "{printed}");

        let size = "{ kind = \"incast\", size = { file = \"sizes.cdf\" } }";
        std::fs::write(&file, format!("workload = {{ kind = \"mix\", parts = [\"bursty\", {size}] }}\n"))
            .unwrap();
        let scenario = Scenario::read(&Node::parse(&Source::read(&file).unwrap()).unwrap()).unwrap();
        assert_eq!(scenario.files(), [folder.path().join("sizes.cdf")]);
    }

    #[test]
    fn the_scenarios_of_the_documentation_are_some() {
        let first = |page: &'static str| {
            let block = page.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
            let scenario = read(block).unwrap();
            let written = scenario.to_toml().unwrap();
            assert_eq!(read(&written).unwrap().to_toml().unwrap(), written);
            scenario
        };
        let whole = first(include_str!("../../../docs/scenario.md"));
        assert_eq!((whole.name.as_str(), whole.faults.len()), ("my-run", 1));
        assert!(first(include_str!("../../../docs/howto/failures.md")).faults.len() > 1);
        let measured = first(include_str!("../../../docs/howto/measure.md")).measure;
        assert_eq!((measured.windows.len(), measured.channels.len()), (2, 2));
        let servers = first(include_str!("../../../docs/howto/gpu-clusters.md")).servers.unwrap();
        assert_eq!((servers.nics, servers.wiring), (8, Wiring::RailOptimised));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(at in 0..900usize, length in 0..40usize, text in "[-a-z0-9=.\"\\[\\]{},# \n]{0,12}") {
            let full = Scenario::default().to_toml().unwrap();
            let cut = |at: usize| (0..=at.min(full.len())).rev().find(|&i| full.is_char_boundary(i)).unwrap_or(0);
            let (start, end) = (cut(at), cut(at + length));
            let changed = format!("{}{text}{}", &full[..start], &full[end..]);
            if let Ok(document) = Node::parse(&Source::new("s.toml", changed)) {
                let _ = Scenario::read(&document);
            }
        }
    }
}

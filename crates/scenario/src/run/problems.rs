//! Where the user wrote what the crates below refuse: their errors name a field, a problem its place.

use netloom_sim::SimError;
use netloom_topology::NetworkError;
use netloom_units::Invalid;
use netloom_workload::WorkloadError;

use crate::document::Node;
use crate::source::Problem;

pub(super) fn network_problem(error: &NetworkError, document: &Node) -> Problem {
    match error {
        NetworkError::Parameter(invalid) => invalid_problem(invalid, "topology", document),
        other => located(document, "topology", "", &other.to_string()),
    }
}

pub(super) fn workload_problem(error: &WorkloadError, document: &Node) -> Problem {
    match error {
        WorkloadError::Parameter(invalid) => invalid_problem(invalid, "workload", document),
        other => located(document, "workload", "", &other.to_string()),
    }
}

/// What is wrong with a job, whose number in the list the error's field begins with.
pub(super) fn job_problem(error: &WorkloadError, document: &Node) -> Problem {
    match error {
        WorkloadError::Parameter(invalid) => invalid_problem(invalid, "jobs", document),
        other => located(document, "jobs", "", &other.to_string()),
    }
}

pub(super) fn sim_problem(error: &SimError, document: &Node) -> Problem {
    match error {
        SimError::Fabric(invalid) => invalid_problem(invalid, "fabric", document),
        SimError::MayDeadlock(reason) => located(document, "fabric", "flow_control.vcs", reason),
        SimError::Servers(error) => invalid_problem(error, "servers", document),
        SimError::Routing(error) => routing_problem(error, document),
        SimError::Transport(error) => invalid_problem(error, "transport", document),
        SimError::Unmarked { refused, wants_trimming } => {
            sim_problem(refused, document).help(marking(*wants_trimming))
        }
        SimError::Fault(error) => invalid_problem(error, "faults", document),
        SimError::Workload(error) => invalid_problem(error, "workload", document),
        SimError::Region(error) => invalid_problem(&error.clone().within("packets"), "detail", document),
        SimError::Measure(error) => invalid_problem(error, "measure", document),
        SimError::Unreachable(reason) => located(document, "faults", "", reason),
        SimError::TooFar(reason) | SimError::TooLarge(reason) => located(document, "topology", "", reason),
    }
}

/// Lines that make switches mark, with sizes for links of 100 Gb/s.
fn marking(wants_trimming: bool) -> String {
    let mut lines = vec!["switches mark, for example, with these lines:", "[fabric]"];
    lines.extend(wants_trimming.then_some("queue = \"trimming\""));
    lines.extend(["buffer = \"200KB\"", "ecn = { kmin = \"40KB\", kmax = \"160KB\" }"]);
    lines.join("\n")
}

/// A value of a routing scheme that makes no sense. Where it is the value of a preset, that is what the user wrote.
fn routing_problem(invalid: &Invalid, document: &Node) -> Problem {
    let routing = document.at(["routing"]);
    let preset = routing.and_then(|routing| routing.as_str().or_else(|| routing.at(["preset"])?.as_str()));
    let field = invalid.field.split('.');
    let is_written = routing.is_some_and(|routing| routing.at(field).is_some());
    let of_preset = preset.filter(|_| !is_written).map(|name| format!(" (by the preset \"{name}\")"));
    located(document, "routing", &invalid.field, &(invalid.reason() + &of_preset.unwrap_or_default()))
}

/// A value that makes no sense in one of the sections.
pub(super) fn invalid_problem(invalid: &Invalid, section: &str, document: &Node) -> Problem {
    located(document, section, &invalid.field, &invalid.reason())
}

/// A problem at a field of a section, placed at the nearest part of it that the user wrote.
pub(super) fn located(document: &Node, section: &str, field: &str, message: &str) -> Problem {
    let path = if field.is_empty() { section.to_owned() } else { format!("{section}.{field}") };
    let problem = Problem::new(path.clone(), message);
    match document.at(section.split('.').take(1)) {
        Some(_) => problem.at(&document.nearest_place(path.split('.'))),
        None => problem,
    }
}

//! A topology file of SimAI: which way messages between GPUs go, and how long they take.

use std::ops::ControlFlow;

use netloom_scenario::{Node, Scenario, Source, prepare, simulate};
use netloom_units::{Bytes, Rate, Time};

/// Two servers of two GPUs (0 to 3), NVSwitches 4 and 5, a leaf for each rail (6 and 7) and a spine.
const RAILS: &str = "9 2 2 3 10 H100\n4 5 6 7 8 \n\
    0 4 2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n1 4 2880Gbps 0.000025ms 0\n1 7 400Gbps 0.0005ms 0\n\
    2 5 2880Gbps 0.000025ms 0\n2 6 400Gbps 0.0005ms 0\n3 5 2880Gbps 0.000025ms 0\n3 7 400Gbps 0.0005ms 0\n\
    6 8 400Gbps 0.0005ms 0\n7 8 400Gbps 0.0005ms 0\n";

fn run(nics: &str) -> Result<Vec<(u32, u32, Option<Time>)>, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("topo"), RAILS).unwrap();
    // One packet each, after the other.
    let flows = "src,dst,bytes,start\n0,1,4096,0us\n0,2,4096,100us\n0,3,4096,200us\n3,2,4096,300us\n";
    std::fs::write(folder.path().join("flows.csv"), flows).unwrap();
    let folder = folder.path().display();
    let text = format!(
        "topology = {{ kind = \"simai-topology\", path = \"{folder}/topo\" }}\n{nics}\n\
         workload = {{ kind = \"flow-list\", file = \"{folder}/flows.csv\" }}\n"
    );
    let document = Node::parse(&Source::new("s.toml", &text)).map_err(|problems| problems.to_string())?;
    let scenario = Scenario::read(&document).map_err(|problems| problems.to_string())?;
    let ready = prepare(&scenario, &document).map_err(|problems| problems.to_string())?;
    let records = simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap().1;
    Ok(records.flows.iter().map(|flow| (flow.src, flow.dst, flow.fct)).collect())
}

#[test]
fn messages_within_a_server_cross_its_nvswitch_and_others_the_network() {
    // Each link takes the packet and its delay.
    let over = |links: u64, rate: u64, ns: u64| {
        let packet = Rate::from_gbps(rate).serialize(Bytes(4096 + 64)).0;
        Some(Time(links * (packet + Time::from_ns(ns).0)))
    };
    let expected = [
        (0, 1, over(2, 2880, 25)),
        (0, 2, over(2, 400, 500)),
        // By the other rail's leaf and the spine.
        (0, 3, over(4, 400, 500)),
        (3, 2, over(2, 2880, 25)),
    ];
    assert_eq!(run("servers = { nics = 2 }").unwrap(), expected);
}

#[test]
fn the_scenario_says_how_many_links_a_gpu_has() {
    let message = run("").unwrap_err();
    assert!(
        message.contains("the hosts of the file have 2 links each: expected a table `servers` with nics = 2"),
        "{message}"
    );
}

//! A cluster in InfraGraph's form runs as the same cluster in another form.

use std::ops::ControlFlow;

use netloom_record::FlowRecord;
use netloom_scenario::{Node, Scenario, Source, prepare, simulate};

/// Three servers with two NICs, NIC r at leaf r, both leaves at a spine.
const CLUSTER: &str = "\
devices:
- name: box
  components: [{name: xpu, count: 2, choice: xpu}, {name: nic, count: 2, choice: nic}]
- name: switch
  components: [{name: port, count: 4, choice: port}]
instances: [{name: host, device: box, count: 3}, {name: leaf, device: switch, count: 2}, {name: spine, device: switch, count: 1}]
links:
- name: rail
  physical: {bandwidth: {gigabits_per_second: 400}, latency: {ns: 500}}
- name: up
  physical: {bandwidth: {gigabytes_per_second: 100}, latency: {us: 1}}
edges:
- {ep1: {instance: host, component: 'nic[0]'}, ep2: {instance: 'leaf[0]', component: port}, scheme: one2one, link: rail}
- {ep1: {instance: host, component: 'nic[1]'}, ep2: {instance: 'leaf[1]', component: port}, scheme: one2one, link: rail}
- {ep1: {instance: leaf, component: 'port[3]'}, ep2: {instance: spine, component: port}, scheme: one2one, link: up}
";

/// The same for ns-3: hosts 0 to 2, leaves 3 and 4, spine 5.
const NS3: &str = "6 3 8\n3 4 5\n\
    0 3 400Gbps 500ns 0\n1 3 400Gbps 500ns 0\n2 3 400Gbps 500ns 0\n\
    0 4 400Gbps 500ns 0\n1 4 400Gbps 500ns 0\n2 4 400Gbps 500ns 0\n\
    3 5 800Gbps 1us 0\n4 5 800Gbps 1us 0\n";

fn run(topology: &str, servers: &str) -> Result<Vec<FlowRecord>, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cluster.yaml"), CLUSTER).unwrap();
    std::fs::write(folder.path().join("topology.txt"), NS3).unwrap();
    let topology = topology.replace("path = \"", &format!("path = \"{}/", folder.path().display()));
    let text = format!(
        "topology = {topology}\n{servers}\nrouting.preset = \"ecmp\"\n\
         [workload]\nkind = \"collective\"\nalgorithm = \"ring-allreduce\"\nsize = \"1MiB\"\n"
    );
    let document = Node::parse(&Source::new("s.toml", &text)).map_err(|problems| problems.to_string())?;
    let scenario = Scenario::read(&document).map_err(|problems| problems.to_string())?;
    let ready = prepare(&scenario, &document).map_err(|problems| problems.to_string())?;
    Ok(simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap().1.flows)
}

const INFRAGRAPH: &str = "{ kind = \"infragraph\", path = \"cluster.yaml\" }";

#[test]
fn servers_have_the_nics_of_the_file() {
    let flows = run(INFRAGRAPH, "servers = { nics = 2 }").unwrap();
    assert_eq!(flows.len(), 3 * 4);
    assert!(flows.iter().all(|flow| flow.fct.is_some()));
    // Each half of a message goes by a NIC of its own and over no spine, as in the other form.
    let ns3 = "{ kind = \"ns3-topology\", path = \"topology.txt\", nics = 2 }";
    assert_eq!(flows, run(ns3, "servers = { nics = 2 }").unwrap());
    let message = run(INFRAGRAPH, "").unwrap_err();
    assert!(
        message.contains("the hosts of the file have 2 links each: expected a table `servers` with nics = 2"),
        "{message}"
    );
    let message = run(INFRAGRAPH, "servers = { nics = 3 }").unwrap_err();
    assert!(message.contains("nics: expected 2"), "{message}");
}

#[test]
fn gpus_and_what_joins_them_are_added_by_the_scenario() {
    let of_gpus = |topology: &str| {
        run(
            topology,
            "servers = { nics = 2, gpus = 2, scale_up = { rate = \"3.6Tbps\", latency = \"500ns\" } }",
        )
        .unwrap()
    };
    let flows = of_gpus(INFRAGRAPH);
    // Six ranks around a ring.
    assert_eq!(flows.len(), 6 * 10);
    assert_eq!(flows, of_gpus("{ kind = \"ns3-topology\", path = \"topology.txt\", nics = 2 }"));
}

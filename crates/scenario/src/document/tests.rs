use super::*;
use crate::source::{Problems, Source};

fn document(text: &str) -> Node {
    Node::parse(&Source::new("test.toml", text)).unwrap()
}

#[test]
fn every_value_knows_where_it_was_written() {
    let root = document("seed = 1\n[routing]\n  selector = { kind = \"hash\" }\n");
    let kind = root.at(["routing", "selector", "kind"]).unwrap();
    assert_eq!((kind.as_str(), kind.place.describe().as_str()), (Some("hash"), "test.toml:3:23"));
}

#[test]
fn all_syntax_errors_are_reported_with_their_place() {
    let problems = Node::parse(&Source::new("bad.toml", "a = = 1\nb = 2\nc = [1,\n")).unwrap_err();
    assert!(problems.0.len() >= 2, "{problems}");
    assert!(problems.to_string().contains("bad.toml:1:5"), "{problems}");
}

#[test]
fn an_override_takes_toml_or_a_bare_string() {
    let mut root = document("[a]\nx = 1\n");
    for text in ["a.x=50us", "a.y=2", "a.z=[1, 2]", "b.c.d=true", "a.t={ kind = \"hash\" }"] {
        apply_override(&mut root, text).unwrap();
    }
    assert_eq!(root.at(["a", "x"]).unwrap().as_str(), Some("50us"));
    assert_eq!(root.at(["a", "y"]).unwrap().value, Value::Integer(2));
    assert_eq!(root.at(["a", "z", "1"]).unwrap().value, Value::Integer(2));
    assert_eq!(root.at(["b", "c", "d"]).unwrap().value, Value::Boolean(true));
    assert_eq!(root.at(["a", "t", "kind"]).unwrap().as_str(), Some("hash"));
}

#[test]
fn an_override_without_meaning_points_at_its_own_text() {
    let mut root = document("list = [1]\nn = 1\n");
    for (text, expected) in [
        ("seed", "--set:1:1: expected an override of the form FIELD=VALUE"),
        ("a..b=1", "--set:1:1: a field name is missing"),
        ("=1", "--set:1:1: a field name is missing"),
        ("n.x=1", "--set:1:1: n.x: `x` cannot be set inside number 1"),
        ("list.3=1", "--set:1:1: list.3: `3` is not a position in this list of 1"),
    ] {
        let problem = Problems::from(apply_override(&mut root, text).unwrap_err()).to_string();
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn a_users_kind_starts_the_table_of_a_default_anew() {
    let mut under = document("[selector]\nkind = \"drill\"\nd = 2\nm = 1\n");
    under.merge(document("[selector]\nd = 4\n"));
    assert_eq!(under.at(["selector", "m"]).unwrap().value, Value::Integer(1));
    assert_eq!(under.at(["selector", "d"]).unwrap().value, Value::Integer(4));
    under.merge(document("[selector]\nkind = \"random\"\n"));
    assert!(under.at(["selector", "d"]).is_none());
}

/// Whichever way another kind is chosen, the others of the user's fields stay.
#[test]
fn a_later_kind_leaves_the_fields_of_its_table() {
    let texts = [
        "[topology]\nkind = \"fat-tree\"\nk = 4\nrate = \"100Gbps\"\n",
        "[topology]\nk = 4\nrate = \"100Gbps\"\n",
    ];
    let overrides = ["topology.kind=slim-fly", "topology=slim-fly", "topology={kind=\"slim-fly\"}"];
    for (text, change) in texts.iter().flat_map(|text| overrides.map(|change| (text, change))) {
        let mut root = document(text);
        apply_override(&mut root, change).unwrap();
        assert_eq!(root.at(["topology", "rate"]).unwrap().as_str(), Some("100Gbps"), "{change}");
        assert_eq!(root.at(["topology", "kind"]).unwrap().as_str(), Some("slim-fly"), "{change}");
        let outlived = root.entry_at(&["topology", "k"]).unwrap().outlived.as_deref();
        assert_eq!(outlived, Some("topology.kind = \"slim-fly\""), "{change}");
        // What is set afterwards is meant for the new kind.
        apply_override(&mut root, "topology.k=6").unwrap();
        assert_eq!(root.entry_at(&["topology", "k"]).unwrap().outlived, None, "{change}");
    }
    // The same kind once more is no other choice, and overrides beside each other are meant together.
    for changes in [&["topology.kind=fat-tree"][..], &["topology.k=8", "topology.kind=crossbar"]] {
        let mut root = document("[topology]\nkind = \"fat-tree\"\nk = 4\n");
        changes.iter().for_each(|change| apply_override(&mut root, change).unwrap());
        assert_eq!(root.entry_at(&["topology", "k"]).unwrap().outlived, None, "{changes:?}");
    }
}

#[test]
fn a_table_is_laid_over_what_is_there() {
    let mut root = document(
        "[fabric]\nbuffer = \"1MB\"\necn = { kmin = 1, kmax = 2 }\n[workload]\nsize = { file = \"a\" }\n",
    );
    for change in ["fabric={ecn={kmin=3}}", "workload.size=1MiB"] {
        apply_override(&mut root, change).unwrap();
    }
    assert_eq!(root.at(["fabric", "buffer"]).unwrap().as_str(), Some("1MB"));
    assert_eq!(root.at(["fabric", "ecn", "kmin"]).unwrap().value, Value::Integer(3));
    assert_eq!(root.at(["fabric", "ecn", "kmax"]).unwrap().value, Value::Integer(2));
    assert_eq!(root.at(["workload", "size"]).unwrap().as_str(), Some("1MiB"), "a size is no kind");
}

#[test]
fn a_parameter_can_be_set_on_a_kind_given_by_name_alone() {
    let mut root = document("selector = \"drill\"\n");
    apply_override(&mut root, "selector.d=3").unwrap();
    assert_eq!(root.at(["selector", "kind"]).unwrap().as_str(), Some("drill"));
    assert_eq!(root.at(["selector", "d"]).unwrap().value, Value::Integer(3));
}

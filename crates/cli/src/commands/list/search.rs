//! What a word that is no name is about.

use std::io::Write;

use netloom_scenario::Chapter;

use super::{Place, first_sentence};
use crate::failure::Failure;
use crate::show;

/// Search words and the words of the texts that they stand for, in the form of [`squeezed`].
const SYNONYMS: &[(&str, &[&str])] = &[
    ("nvl72", &["cluster"]),
    ("hpn", &["cluster"]),
    ("superpod", &["cluster"]),
    ("gpu", &["servers", "cluster", "collective", "railoptimised", "chakra"]),
    ("nccl", &["collective", "servers"]),
    ("nvlink", &["servers", "scaleup"]),
    ("nvswitch", &["servers", "scaleup"]),
    ("dualplane", &["servers", "planes"]),
    ("dualtor", &["servers", "railoptimised"]),
    ("rail", &["railoptimised"]),
    ("training", &["collective", "chakra", "goal"]),
    ("mpi", &["goal", "collective", "skeleton"]),
    ("moe", &["alltoall"]),
    ("trace", &["goal", "chakra", "flowlist"]),
    ("clos", &["fattree", "leafspine", "xgft"]),
    ("kary", &["torus", "mesh"]),
    ("rdma", &["roce", "dcqcn", "gobackn"]),
    ("infiniband", &["credits", "roce", "adaptive"]),
    ("lossless", &["pfc", "credits"]),
    ("pause", &["pfc"]),
    ("spraying", &["spray", "reps", "packet"]),
    ("reordering", &["reorder"]),
    ("multipath", &["mptcp", "subflows", "ecmp", "spray"]),
    ("loadbalancing", &["routing", "ecmp", "letflow", "conga"]),
    ("failure", &["faults", "cut", "degrade"]),
    ("congestioncontrol", &["congestion"]),
    ("buffersize", &["buffer"]),
    ("cdf", &["websearch", "datamining"]),
    ("load", &["poisson", "bernoulli"]),
    ("seed", &["seed"]),
];

/// Something that the word is about.
pub(super) struct Hit {
    /// How it is written.
    name: String,
    /// What it is, in a sentence.
    text: String,
    rank: Rank,
}

/// The better first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Name,
    PartOfName,
    Synonym,
    Text,
}

/// Only the letters and digits, in lower case: `All-reduce` becomes `allreduce`.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Everything whose name or text has the word, or a word that stands for it; the best first.
pub(super) fn search(word: &str, chapters: &[Chapter], places: &[Place<'_>]) -> Vec<Hit> {
    let wanted = squeezed(word);
    if wanted.is_empty() {
        return Vec::new();
    }
    let others = SYNONYMS.iter().find(|(known, _)| *known == wanted).map_or(&[][..], |(_, others)| others);
    let rank = |name: &str, doc: &str| {
        let name = squeezed(name);
        if name == wanted {
            Some(Rank::Name)
        } else if name.contains(&wanted) {
            Some(Rank::PartOfName)
        } else if others.iter().any(|other| name.ends_with(other)) {
            Some(Rank::Synonym)
        } else if has_word(doc, &wanted) {
            Some(Rank::Text)
        } else {
            None
        }
    };
    let mut hits = Vec::new();
    let mut add = |rank: Option<Rank>, name: String, doc: &str| {
        if let Some(rank) = rank
            && !hits.iter().any(|hit: &Hit| hit.name == name)
        {
            hits.push(Hit { name, text: first_sentence(doc), rank });
        }
    };
    for chapter in chapters {
        if !chapter.path.is_empty() && chapter.choice.is_none() {
            add(rank(chapter.path, chapter.doc), format!("[{}]", chapter.path), chapter.doc);
        }
        for entry in &chapter.entries {
            if let Some(choice) = chapter.choice {
                add(
                    rank(entry.name, &entry.doc),
                    format!("[{}] {choice} = {:?}", chapter.path, entry.name),
                    &entry.doc,
                );
            }
        }
    }
    for place in places {
        let of_path = rank(&place.path, &place.field.doc).filter(|rank| *rank == Rank::Synonym);
        add(rank(&place.field.name, &place.field.doc).or(of_path), place.path.clone(), &place.field.doc);
        for value in &place.field.values {
            add(rank(&value.name, &value.doc), format!("{} = {:?}", place.path, value.name), &value.doc);
        }
    }
    hits.sort_by_key(|hit| hit.rank);
    // What only mentions the word is of interest where nothing is named by it.
    let named = hits.iter().filter(|hit| hit.rank < Rank::Text).count();
    if named > 0 {
        hits.truncate(named + MENTIONS);
    }
    hits
}

/// How many texts that mention the word are shown beside what is named by it.
const MENTIONS: usize = 8;

/// Whether a text has the word, at the beginning of one of its words.
fn has_word(text: &str, wanted: &str) -> bool {
    let text = text.to_lowercase();
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    (0..words.len()).any(|start| {
        // `all-to-all` is three words.
        let mut joined = String::new();
        words[start..].iter().take(4).any(|word| {
            joined += word;
            joined == wanted || (wanted.len() > 3 && joined.starts_with(wanted))
        })
    })
}

/// Shows what was found, a line or two for each.
pub(super) fn print(hits: &[Hit], word: &str) -> Result<(), Failure> {
    let mut out = show::out();
    writeln!(
        out,
        "{} for `{}`; `netloom list NAME` explains one in full\n",
        plural(hits.len()),
        show::visible(word)
    )?;
    for Hit { name, text, .. } in hits {
        writeln!(out, "{name}\n{}", show::wrap(&format!("    {text}"), 4))?;
    }
    Ok(())
}

fn plural(count: usize) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

pub(super) fn print_json(hits: &[Hit]) -> Result<(), Failure> {
    let hit = |hit: &Hit| serde_json::json!({ "name": hit.name, "doc": hit.text });
    super::print(&hits.iter().map(hit).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::list::{chapters, find, places};

    #[test]
    fn words_that_people_use_find_what_they_mean() {
        let chapters = chapters();
        let places = places(&chapters);
        for (word, first) in [
            ("allreduce", "workload.algorithm = \"ring-allreduce\""),
            ("All-Reduce", "workload.algorithm = \"ring-allreduce\""),
            ("ECN", "fabric.ecn"),
            ("GPU", "[servers]"),
            ("Slim Fly", "[topology] kind = \"slim-fly\""),
            ("spraying", "[routing] preset = \"spray\""),
            ("lossless", "[fabric.flow_control] kind = \"pfc\""),
            ("infiniband", "[fabric.flow_control] kind = \"credits\""),
            ("Mudigonda", "[routing.selector.construction] kind = \"spain\""),
        ] {
            let hits = search(word, &chapters, &places);
            let names: Vec<&str> = hits.iter().map(|hit| hit.name.as_str()).collect();
            assert!(names.contains(&first), "{word}: {names:?}");
        }
        assert!(search("xyzzy", &chapters, &places).is_empty());
    }

    /// A synonym for something that was renamed would find nothing.
    #[test]
    fn every_synonym_finds_something_by_its_name() {
        let chapters = chapters();
        let places = places(&chapters);
        for (word, others) in SYNONYMS {
            for other in *others {
                let names = search(other, &chapters, &places);
                assert!(
                    names.iter().any(|hit| hit.rank < Rank::Text) || find(other, &chapters, &places).is_ok(),
                    "{word}: {other}"
                );
            }
        }
    }
}

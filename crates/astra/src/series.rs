//! Which file is the execution trace of which rank.

use std::path::{Path, PathBuf};

use netloom_units::narrow;

use crate::error::JobError;

/// More ranks than this are refused.
pub const MOST_RANKS: u32 = 1 << 16;

/// How many ranks may be missing in a row before no more are looked for.
const MISSING: u32 = 64;

/// What comes after the rank, in the order in which it is looked for.
const ENDINGS: [&str; 4] = ["et", "et.gz", "json", "json.gz"];

/// The traces of a job, rank by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Series {
    /// Rank r has `PREFIX.r.et`, else `PREFIX.r.et.gz`, `PREFIX.r.json` or `PREFIX.r.json.gz`.
    Prefix(PathBuf),
    /// A name with `%d` (or `%03d`, for a number of three digits with zeros before it) where the rank stands.
    Numbered(String),
    /// Files found by a pattern of their names, in the order of the ranks.
    Found {
        /// What their names fit.
        pattern: PathBuf,
        /// The files.
        files: Vec<PathBuf>,
    },
}

impl Series {
    /// The series that a name means: with `%d` a pattern, with `*` or `?` all files of such names, by the last number in each; else a prefix.
    ///
    /// # Errors
    /// If no file has such a name, or their numbers are not those of ranks.
    pub fn new(name: &Path) -> Result<Self, JobError> {
        let text = name.to_string_lossy();
        if placeholder(&text).is_some() {
            return Ok(Series::Numbered(text.into_owned()));
        }
        match text.contains(['*', '?']) {
            true => found(name).map(|files| Series::Found { pattern: name.to_owned(), files }),
            false => Ok(Series::Prefix(name.to_owned())),
        }
    }

    /// The trace of a rank; if there is none, a name that it could have.
    pub fn file(&self, rank: u32) -> PathBuf {
        self.find(rank).unwrap_or_else(|| match self {
            Series::Prefix(prefix) => with_ending(prefix, rank, ENDINGS[0]),
            Series::Numbered(pattern) => PathBuf::from(with_rank(pattern, rank)),
            Series::Found { pattern, .. } => pattern.clone(),
        })
    }

    /// The trace of a rank, if it has one.
    fn find(&self, rank: u32) -> Option<PathBuf> {
        match self {
            Series::Prefix(prefix) => {
                ENDINGS.map(|ending| with_ending(prefix, rank, ending)).into_iter().find(|file| file.exists())
            }
            Series::Numbered(pattern) => {
                Some(PathBuf::from(with_rank(pattern, rank))).filter(|file| file.exists())
            }
            Series::Found { files, .. } => files.get(rank as usize).cloned(),
        }
    }

    /// All of them, up to the first rank that has none.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        (0..MOST_RANKS).map_while(|rank| self.find(rank))
    }

    /// How many ranks have a trace, up to the first that has none.
    ///
    /// # Errors
    /// If rank 0 has none, or one is missing between others.
    pub fn ranks(&self) -> Result<u32, JobError> {
        let ranks = narrow::<u32>(self.files().count());
        if let Some(later) = (ranks + 1..ranks + 1 + MISSING).find(|&rank| self.find(rank).is_some()) {
            let problem = format!("expected the trace of rank {ranks}, as there is one of rank {later}");
            return Err(JobError::file(&self.file(ranks), problem));
        }
        match ranks {
            0 => {
                let problem = "expected the trace of rank 0: the name of traces is what comes before `.RANK.et`, or has `%d` or `*` for the rank";
                Err(JobError::file(&self.file(0), problem))
            }
            ranks => Ok(ranks),
        }
    }
}

fn with_ending(prefix: &Path, rank: u32, ending: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(format!(".{rank}.{ending}"));
    name.into()
}

/// The first `%d` of a pattern: where it begins and ends, and the least number of its digits.
fn placeholder(text: &str) -> Option<(usize, usize, usize)> {
    text.match_indices('%').find_map(|(at, _)| {
        let rest = &text[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let is_padded = digits == 0 || rest.starts_with('0');
        let width = rest[..digits].parse().unwrap_or(0);
        (is_padded && width <= 20 && rest[digits..].starts_with('d')).then_some((at, at + digits + 2, width))
    })
}

fn with_rank(pattern: &str, rank: u32) -> String {
    let (mut name, mut rest) = (String::new(), pattern);
    while let Some((begin, end, width)) = placeholder(rest) {
        name.push_str(&rest[..begin]);
        name.push_str(&format!("{rank:0width$}"));
        rest = &rest[end..];
    }
    name + rest
}

/// The files of a folder whose names fit a pattern, by the last number in each, which is the rank.
fn found(pattern: &Path) -> Result<Vec<PathBuf>, JobError> {
    let folder = pattern.parent().unwrap_or(Path::new(""));
    let name = pattern.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if folder.to_string_lossy().contains(['*', '?']) {
        let problem = "expected `*` and `?` in the name of the file only; `%d` stands for the rank in the name of a folder, too";
        return Err(JobError::file(pattern, problem));
    }
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut files: Vec<(u64, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(place).map_err(JobError::read(place))? {
        let entry = entry.map_err(JobError::read(place))?.file_name();
        let entry = entry.to_string_lossy();
        if !fits(name.as_bytes(), entry.as_bytes()) {
            continue;
        }
        let file = folder.join(&*entry);
        let Some(rank) = last_number(&entry) else {
            return Err(JobError::file(
                &file,
                "expected the rank in its name, as the pattern of traces finds this file",
            ));
        };
        files.push((rank, file));
    }
    files.sort();
    if let Some(pair) = files.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let problem = format!("expected one trace of rank {}: {} is another", pair[0].0, pair[0].1.display());
        return Err(JobError::file(&pair[1].1, problem));
    }
    if files.is_empty() {
        return Err(JobError::file(pattern, "expected a file of such a name for each rank, found none"));
    }
    if let Some((rank, (number, file))) = (0..).zip(&files).find(|(rank, (number, _))| number != rank) {
        let problem = format!(
            "expected traces of ranks 0, 1, 2, and so on, by the last number in their names: found {number} where {rank} was expected"
        );
        return Err(JobError::file(file, problem));
    }
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

/// The last number in the name of a file, before what says its format.
fn last_number(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(".gz").unwrap_or(name);
    let is_digit = |c: char| c.is_ascii_digit();
    let end = stem.rfind(is_digit)? + 1;
    let begin = stem[..end]
        .rfind(|c| !is_digit(c))
        .map_or(0, |at| at + stem[at..].chars().next().map_or(1, char::len_utf8));
    stem[begin..end].parse().ok()
}

/// Whether a name fits a pattern in which `*` is any text and `?` any byte.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last star stood, and what it took.
    let (mut at, mut in_name, mut star) = (0, 0, None);
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => {
                let Some((of_star, taken)) = star else { return false };
                star = Some((of_star, taken + 1));
                at = of_star + 1;
                in_name = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_stand_where_the_pattern_says() {
        assert_eq!(with_rank("a/r%d/t%03d.et", 7), "a/r7/t007.et");
        assert_eq!(with_rank("100%_%5d_%d", 7), "100%_%5d_7");
        assert_eq!(placeholder("100%"), None);
        for (pattern, name, expected) in [
            ("*.et", "a.0.et", true),
            ("a*b*c", "abbbc", true),
            ("a*b*c", "abbbd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
        assert_eq!(last_number("llama-7b.rank_012.et.gz"), Some(12));
        assert_eq!(last_number("é3"), Some(3));
        assert_eq!(last_number("x.et"), None);
    }

    #[test]
    fn files_are_found_by_prefix_pattern_and_name() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(folder.path().join(name), "").unwrap();
        for rank in 0..11 {
            write(&format!("t.{rank}.{}", ENDINGS[rank % 4]));
            write(&format!("u_{rank:02}.et"));
        }
        let series = |name: &str| Series::new(&folder.path().join(name)).unwrap();
        for (name, of_ten) in
            [("t", "t.10.json"), ("u_%02d.et", "u_10.et"), ("u_*", "u_10.et"), ("t.*", "t.10.json")]
        {
            let series = series(name);
            assert_eq!(series.ranks().unwrap(), 11, "{name}");
            assert_eq!(series.file(10), folder.path().join(of_ten));
            assert_eq!(series.files().count(), 11);
        }
        let error = |name: &str| {
            let error = Series::new(&folder.path().join(name)).and_then(|series| series.ranks()).unwrap_err();
            error.to_string().replace(&format!("{}/", folder.path().display()), "")
        };
        write("t.zero.et");
        write("u_1.et");
        write("v_1.et");
        assert_eq!(
            error("t.*"),
            "t.zero.et: expected the rank in its name, as the pattern of traces finds this file"
        );
        assert!(error("u_*").starts_with("u_1.et: expected one trace of rank 1"), "{}", error("u_*"));
        assert!(error("v_*").ends_with("found 1 where 0 was expected"));
        assert!(error("w*").starts_with("w*: expected a file of such a name"));
        assert!(error("v_%d").starts_with("v_0: expected the trace of rank 0"));
        assert!(error("*/v").starts_with("*/v: expected `*` and `?` in the name of the file only"));
    }
}

//! How much memory there is, asked before it is taken.
//!
//! What a user writes can ask for any amount of memory: a network of a billion hosts in one line, a list of flows of a
//! terabyte, a compressed schedule that never ends, `/dev/zero`. Readers and builders ask here first, and refuse with an estimate.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

use crate::Bytes;
use crate::names::shorten;

/// The variable by which a user sets how much memory there is, e.g. `NETLOOM_MEMORY=4GiB`.
pub const VARIABLE: &str = "NETLOOM_MEMORY";

/// What the user or the program has set, once that was asked for.
static SET: OnceLock<Result<Option<Bytes>, Unreadable>> = OnceLock::new();

/// The variable [`VARIABLE`] holds no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable NETLOOM_MEMORY: expected a size such as 4GiB, found {0:?}")]
pub struct Unreadable(String);

/// Sets how much memory may be used from now on, unless that was asked for already.
///
/// # Errors
/// What was set before.
pub fn set_available(bytes: Bytes) -> Result<(), Option<Bytes>> {
    SET.set(Ok(Some(bytes))).map_err(|_| limit().unwrap_or(Some(Bytes(0))))
}

/// The limit that was set, if any.
///
/// # Errors
/// If the variable [`VARIABLE`] holds no size.
pub fn limit() -> Result<Option<Bytes>, Unreadable> {
    SET.get_or_init(|| read_limit(std::env::var_os(VARIABLE).as_deref())).clone()
}

fn read_limit(variable: Option<&OsStr>) -> Result<Option<Bytes>, Unreadable> {
    let Some(text) = variable.map(OsStr::to_string_lossy).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    text.trim().parse().map(Some).map_err(|_| Unreadable(shorten(&text).into_owned()))
}

/// Adds an item to a list of which there are many, most of them with one item: a new list gets room for that one only.
pub fn push_few<T>(list: &mut Vec<T>, item: T) {
    if list.capacity() == 0 {
        list.reserve_exact(1);
    }
    list.push(item);
}

/// Memory that may be used, in bytes: what the variable [`VARIABLE`] says (nothing, if it cannot be read); otherwise what can be had without
/// swapping, in the machine, in the control group of this process and below its own limits (`ulimit -v`, `-d`); 8 GiB where the system does
/// not say.
pub fn available() -> u64 {
    match limit() {
        Ok(Some(Bytes(set))) => set,
        Err(_) => 0,
        Ok(None) => {
            let limits = [of_group(), room_of_process()];
            limits.into_iter().flatten().fold(of_machine().unwrap_or(8 << 30), u64::min)
        }
    }
}

/// Refuses to go on once the process has more memory than was set, or nearly as much as the system lets it have. Where neither limits it,
/// that costs nothing.
///
/// # Errors
/// If so.
pub fn check_use() -> Result<(), TooLarge> {
    if let Ok(Some(Bytes(available))) = limit() {
        let needed = of_status("VmRSS:").unwrap_or(0);
        if needed > available {
            return Err(TooLarge { needed, available });
        }
    }
    // What is asked for at once may be as large as this.
    const LAST_ROOM: u64 = 32 << 20;
    match room_of_process() {
        Some(available) if available < LAST_ROOM => Err(TooLarge { needed: LAST_ROOM, available }),
        _ => Ok(()),
    }
}

/// What the limits of this process leave of its addresses and of its data, where there are any.
fn room_of_process() -> Option<u64> {
    let rooms = process_limits().map(|(limit, used)| Some(limit?.saturating_sub(of_status(used)?)));
    rooms.into_iter().flatten().min()
}

/// The limits with which the process began, each with the name of what counts against it.
fn process_limits() -> [(Option<u64>, &'static str); 2] {
    static LIMITS: OnceLock<[Option<u64>; 2]> = OnceLock::new();
    let [addresses, data] = *LIMITS.get_or_init(|| {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        ["Max address space", "Max data size"].map(|name| soft_limit(&limits, name))
    });
    [(addresses, "VmSize:"), (data, "VmData:")]
}

/// The number behind a name in the system's list of limits; `unlimited` is none.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A line of what the system says of this process.
fn of_status(name: &str) -> Option<u64> {
    in_bytes(&std::fs::read_to_string("/proc/self/status").ok()?, name)
}

/// The number behind a name in a list whose numbers are in kilobytes.
fn in_bytes(list: &str, name: &str) -> Option<u64> {
    let line = list.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn of_machine() -> Option<u64> {
    in_bytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// What batch systems and containers leave: the limit of the control group less what is in use.
fn of_group() -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(Path::new("/sys/fs/cgroup").join(name)).ok();
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    Some(limit.saturating_sub(used))
}

/// Bytes as people read them: `1.5 GiB`, or MiB and KiB where there are few. Beyond an EiB, where estimates are no longer exact: `more than 1 EiB`.
pub fn in_words(bytes: u64) -> String {
    if bytes >= 1 << 60 {
        return "more than 1 EiB".to_owned();
    }
    let (unit, name) = match bytes {
        0..0x10_0000 => (1 << 10, "KiB"),
        0x10_0000..0x4000_0000 => (1 << 20, "MiB"),
        _ => (1u64 << 30, "GiB"),
    };
    format!("{:.1} {name}", bytes as f64 / unit as f64)
}

/// More memory would be needed than there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it needs at least {} of memory, and {} are available (the variable NETLOOM_MEMORY sets another limit)",
    in_words(*needed), in_words(*available)
)]
pub struct TooLarge {
    /// What would be needed, in bytes, as far as that was counted.
    pub needed: u64,
    /// What there is, in bytes.
    pub available: u64,
}

/// Passes if this many bytes can be had.
///
/// # Errors
/// If not.
pub fn check(needed: u64) -> Result<(), TooLarge> {
    let available = available();
    if needed > available { Err(TooLarge { needed, available }) } else { Ok(()) }
}

/// Counts what is taken bit by bit, for readers that cannot tell from the outside how much a file holds.
#[derive(Clone, Debug)]
pub struct Meter {
    taken: u64,
    available: u64,
}

impl Default for Meter {
    fn default() -> Self {
        Meter { taken: 0, available: available() }
    }
}

impl Meter {
    /// Takes this many bytes more.
    ///
    /// # Errors
    /// If there are not this many.
    #[inline]
    pub fn take(&mut self, bytes: u64) -> Result<(), TooLarge> {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken > self.available {
            return Err(TooLarge { needed: self.taken, available: self.available });
        }
        Ok(())
    }
}

/// Reads a file whose content will take `times` its size in memory. What is no regular file, such as a pipe, is read up to the
/// same limit.
///
/// # Errors
/// What the system says; a file that is too large.
pub fn read_bytes(path: &Path, times: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let too_large = |length: u64| {
        let error = TooLarge { needed: length.saturating_mul(times), available: available() };
        io::Error::new(io::ErrorKind::OutOfMemory, error)
    };
    let most = available() / times;
    if length > most {
        return Err(too_large(length));
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Reads a text file in the same way.
///
/// # Errors
/// As [`read_bytes`]; a file that is no UTF-8 text.
pub fn read_text(path: &Path, times: u64) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text");
    String::from_utf8(read_bytes(path, times)?).map_err(no_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_unit_that_suits_them() {
        assert_eq!([500, 3 << 19, 5 << 30].map(in_words), ["0.5 KiB", "1.5 MiB", "5.0 GiB"]);
    }

    #[test]
    fn a_limit_is_a_size_or_refused() {
        let read = |text: &str| read_limit(Some(OsStr::new(text)));
        assert_eq!(
            (read("4GiB"), read(" 1MB "), read("")),
            (Ok(Some(Bytes(4 << 30))), Ok(Some(Bytes(1_000_000))), Ok(None))
        );
        assert_eq!(read_limit(None), Ok(None));
        for wrong in ["lots", "4 GB of it", "-1", "4GiB,"] {
            let message = read(wrong).unwrap_err().to_string();
            assert!(
                message.ends_with(&format!("expected a size such as 4GiB, found {wrong:?}")),
                "{message}"
            );
        }
    }

    #[test]
    fn limits_of_the_process_are_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max data size             unlimited            unlimited            bytes     \n\
                      Max address space         153600000            unlimited            bytes     \n";
        assert_eq!(soft_limit(limits, "Max address space"), Some(153_600_000));
        assert_eq!(soft_limit(limits, "Max data size"), None);
        let status = "VmSize:\t  103788 kB\nVmRSS:\t   9216 kB\n";
        assert_eq!((in_bytes(status, "VmSize:"), in_bytes(status, "VmData:")), (Some(103_788 << 10), None));
    }

    #[test]
    fn a_meter_stops_where_memory_ends() {
        let mut meter = Meter { taken: 0, available: 100 };
        assert!(meter.take(60).is_ok() && meter.take(40).is_ok());
        let error = meter.take(u64::MAX).unwrap_err().to_string();
        assert!(error.contains("0.1 KiB are available"), "{error}");
    }

    #[test]
    fn what_never_ends_is_not_read() {
        let most = u64::MAX / 2;
        let error = read_text(Path::new("/dev/zero"), most).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(read_text(Path::new("/dev/null"), most).unwrap().is_empty());
    }
}

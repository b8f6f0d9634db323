//! libnetloom: driven runs for programs in C and whatever can call C. `include/netloom.h` documents every function.
//!
//! Everything that can go wrong is said by a return value and [`netloom_error`]; a panic does not cross into C. This is the only crate
//! with unsafe code besides the Python package and the command's allocator: C hands over pointers, and only the header's promises say what they point to. So every
//! function that takes one is `unsafe`, and its caller promises what holds of them: a string is NULL or ends with a zero byte; a simulation is
//! NULL or came from `netloom_open` or `netloom_open_file`, was not closed, and is used by one thread at a time; a completion or an event
//! is NULL or may be written to; `messages` is NULL or points to `count` messages.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![allow(unsafe_code)]

mod simulation;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use netloom_scenario::Source;
use netloom_sim::Order;
use netloom_units::{Bytes, Time};

pub use simulation::{Completion, Event, Message, Simulation};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Does what C asked for; what goes wrong becomes `failed`, and words for [`netloom_error`].
fn guarded<T>(failed: T, what: impl FnOnce() -> Result<T, String>) -> T {
    let (result, message) = match catch_unwind(AssertUnwindSafe(what)) {
        Ok(Ok(result)) => (result, None),
        Ok(Err(message)) => (failed, Some(message)),
        Err(_) => {
            let message = "netloom made a mistake; please report it together with the scenario";
            (failed, Some(message.to_owned()))
        }
    };
    ERROR.with_borrow_mut(|error| match message {
        Some(message) => *error = CString::new(message.replace('\0', "")).unwrap_or_default(),
        // Programs call for every message: nothing is allocated where nothing went wrong.
        None if error.is_empty() => {}
        None => *error = CString::default(),
    });
    result
}

/// A string of C's.
///
/// # Safety
/// It is NULL, or ends with a zero byte and lasts until the call returns.
unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, String> {
    if pointer.is_null() {
        return Err(format!("{name}: expected a text, found NULL"));
    }
    // SAFETY: it is not NULL, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|error| format!("{name}: expected UTF-8: {error}"))
}

/// A simulation of C's.
///
/// # Safety
/// It is NULL, or came from [`open`] and was not closed; no other thread uses it during the call.
unsafe fn simulation<'a>(pointer: *mut Simulation) -> Result<&'a mut Simulation, String> {
    // SAFETY: the caller promises so.
    unsafe { pointer.as_mut() }.ok_or_else(|| "sim: expected a simulation, found NULL".to_owned())
}

/// See `netloom.h`.
#[unsafe(no_mangle)]
pub extern "C" fn netloom_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// See `netloom.h`.
#[unsafe(no_mangle)]
pub extern "C" fn netloom_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

fn open(source: impl FnOnce() -> Result<Source, String>) -> *mut Simulation {
    guarded(std::ptr::null_mut(), || Ok(Box::into_raw(Box::new(Simulation::new(&source()?)?))))
}

/// See `netloom.h`.
///
/// # Safety
/// `toml` is NULL, or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_open(toml: *const c_char) -> *mut Simulation {
    // SAFETY: the caller promises what is asked of a string.
    open(|| Ok(Source::new("scenario", unsafe { text(toml, "toml") }?)))
}

/// See `netloom.h`.
///
/// # Safety
/// `path` is NULL, or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_open_file(path: *const c_char) -> *mut Simulation {
    // SAFETY: the caller promises what is asked of a string.
    let path = || unsafe { text(path, "path") };
    open(|| Source::read(Path::new(path()?)).map_err(|problem| problem.to_string()))
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_hosts(sim: *mut Simulation) -> u32 {
    // SAFETY: the caller promises what is asked of a simulation.
    guarded(0, || Ok(unsafe { simulation(sim) }?.hosts()))
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_now(sim: *mut Simulation) -> u64 {
    // SAFETY: the caller promises what is asked of a simulation.
    guarded(0, || Ok(unsafe { simulation(sim) }?.now().0))
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_set_reaction(sim: *mut Simulation, reaction_ps: u64) -> c_int {
    // SAFETY: the caller promises what is asked of a simulation.
    guarded(-1, || unsafe { simulation(sim) }?.set_reaction(Time(reaction_ps)).map(|()| 0))
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_report_acknowledged(sim: *mut Simulation) -> c_int {
    // SAFETY: the caller promises what is asked of a simulation.
    guarded(-1, || unsafe { simulation(sim) }?.report_acknowledged().map(|()| 0))
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_earliest_start(sim: *mut Simulation) -> u64 {
    // SAFETY: the caller promises what is asked of a simulation.
    guarded(0, || Ok(unsafe { simulation(sim) }?.earliest_start().0))
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_set_threads(sim: *mut Simulation, threads: u32) -> c_int {
    // SAFETY: the caller promises what is asked of a simulation.
    guarded(-1, || unsafe { simulation(sim) }?.set_threads(threads).map(|()| 0))
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_start(
    sim: *mut Simulation,
    src: u32,
    dst: u32,
    size: u64,
    tag: u64,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller promises what is asked of a simulation.
        let sim = unsafe { simulation(sim) }?;
        let at = sim.earliest_start();
        sim.start(Order { src, dst, bytes: Bytes(size), at, class: 0 }, tag).map(|()| 0)
    })
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_start_at(
    sim: *mut Simulation,
    src: u32,
    dst: u32,
    size: u64,
    tag: u64,
    time_ps: u64,
    traffic_class: u8,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller promises what is asked of a simulation.
        let sim = unsafe { simulation(sim) }?;
        sim.start(Order { src, dst, bytes: Bytes(size), at: Time(time_ps), class: traffic_class }, tag)
            .map(|()| 0)
    })
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
/// `messages` is NULL, or points to `count` messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_start_many(
    sim: *mut Simulation,
    messages: *const Message,
    count: usize,
) -> c_int {
    guarded(-1, || {
        if messages.is_null() && count > 0 {
            return Err(format!("messages: expected {count} messages, found NULL"));
        }
        let messages = match count {
            0 => &[],
            // SAFETY: the caller promises that it points to `count` messages.
            _ => unsafe { std::slice::from_raw_parts(messages, count) },
        };
        // SAFETY: the caller promises what is asked of a simulation.
        unsafe { simulation(sim) }?.start_all(messages).map(|()| 0)
    })
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_run_until(sim: *mut Simulation, time_ps: u64) -> c_int {
    // SAFETY: the caller promises what is asked of a simulation.
    guarded(-1, || unsafe { simulation(sim) }?.run_until(Time(time_ps)).map(|()| 0))
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
/// `completion` is NULL, or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_next_completion(
    sim: *mut Simulation,
    until_ps: u64,
    completion: *mut Completion,
) -> c_int {
    // SAFETY: the caller promises so.
    let completion = unsafe { completion.as_mut() };
    // SAFETY: the caller promises what is asked of a simulation.
    let next = || unsafe { simulation(sim) }?.next_completion(Time(until_ps));
    fill(completion, "completion", next)
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
/// `event` is NULL, or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_next_event(sim: *mut Simulation, until_ps: u64, event: *mut Event) -> c_int {
    // SAFETY: the caller promises so.
    let event = unsafe { event.as_mut() };
    // SAFETY: the caller promises what is asked of a simulation.
    fill(event, "event", || unsafe { simulation(sim) }?.next_event(Time(until_ps)))
}

/// Puts what is found where C wants it: 1, or 0 if there is nothing.
fn fill<T>(place: Option<&mut T>, name: &str, next: impl FnOnce() -> Result<Option<T>, String>) -> c_int {
    guarded(-1, || {
        let place = place.ok_or_else(|| format!("{name}: expected a place for it, found NULL"))?;
        let Some(found) = next()? else { return Ok(0) };
        *place = found;
        Ok(1)
    })
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
/// `folder` is NULL, or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_finish(sim: *mut Simulation, folder: *const c_char) -> c_int {
    guarded(-1, || {
        let folder = match folder.is_null() {
            true => None,
            // SAFETY: the caller promises what is asked of a string.
            false => Some(Path::new(unsafe { text(folder, "folder") }?)),
        };
        // SAFETY: the caller promises what is asked of a simulation.
        unsafe { simulation(sim) }?.finish(folder).map(|()| 0)
    })
}

/// See `netloom.h`.
///
/// # Safety
/// `sim` is NULL, or came from [`netloom_open`] or [`netloom_open_file`], was not closed, and is used by no other thread during the call.
/// It is used by nothing afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn netloom_close(sim: *mut Simulation) {
    if !sim.is_null() {
        guarded((), || {
            // SAFETY: it came from `Box::into_raw` in `open` and is closed once.
            drop(unsafe { Box::from_raw(sim) });
            Ok(())
        });
    }
}

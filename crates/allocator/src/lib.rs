//! Memory of the command: mimalloc, and a message with an exit code where the system gives no more.
//!
//! What a run will need is estimated before it, and looked at while it goes on. Between two looks a limit of the process (`ulimit -v`) may be
//! met all the same, at which Rust aborts: a core dump, and exit code 134, for what is no mistake of the program.
//!
//! A crate of its own, as what is called for each allocation is optimised and the command is not.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Asks for huge pages, which the nodes of a large network need: they are scattered over more memory than small pages let a processor find at once.
struct Allocator;

/// Ends the process where there is no memory.
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        // Neither takes memory.
        let message = b"error: the system gives the process no more memory (see `ulimit -v`); NETLOOM_MEMORY sets a limit of netloom's own\n";
        let _ = std::io::stderr().write_all(message);
        std::process::exit(1);
    }
    memory
}

// SAFETY: all is mimalloc's, but what it does not give does not come back here.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that mimalloc asks for.
        given(unsafe { MiMalloc.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { MiMalloc.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { MiMalloc.realloc(memory, layout, size) })
    }
}

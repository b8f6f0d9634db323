//! Asks for memory before it is needed. All of it affects speed only.

/// Has the processor bring a value's first cache line into its second-level cache, where that can be asked for.
#[inline(always)]
pub fn fetch<T>(value: &T) {
    ask_for(std::ptr::from_ref(value).cast());
}

/// The same for what lies behind a value, where another one of its kind may.
#[inline(always)]
pub fn fetch_next<T>(value: &T) {
    ask_for(std::ptr::from_ref(value).wrapping_add(1).cast());
}

/// The same for all lines of a value.
#[inline(always)]
pub fn fetch_whole<T>(value: &T) {
    const LINE: usize = 64;
    let start = std::ptr::from_ref(value).cast::<u8>();
    for line in 0..size_of::<T>().div_ceil(LINE) {
        ask_for(start.wrapping_add(line * LINE));
    }
}

#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no stable way to ask"))]
fn ask_for(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "the instruction has no safe form")]
    // SAFETY: a hint that may name any address, and every x86-64 knows it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
}

//! Prefetches: memory is loaded before it is needed. All of it affects speed only.

/// Prefetches a value's first cache line into the second-level cache, where the processor has an instruction for that.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    load(std::ptr::from_ref(value).cast());
}

/// Prefetches what lies behind a value, where another one of its type may.
#[inline(always)]
pub fn prefetch_next<T>(value: &T) {
    load(std::ptr::from_ref(value).wrapping_add(1).cast());
}

/// Prefetches all lines of a value.
#[inline(always)]
pub fn prefetch_whole<T>(value: &T) {
    const LINE: usize = 64;
    let start = std::ptr::from_ref(value).cast::<u8>();
    for line in 0..size_of::<T>().div_ceil(LINE) {
        load(start.wrapping_add(line * LINE));
    }
}

#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no stable intrinsic"))]
fn load(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "the instruction has no safe form")]
    // SAFETY: the instruction reads no memory that the program could see and raises no fault, whatever the address; SSE, to which it belongs, is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
}

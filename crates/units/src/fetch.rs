//! Asks for memory before it is needed.

/// Has the processor bring a value's first cache line into its second-level cache, where that can be asked for. Affects speed only.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no stable way to ask"))]
pub fn fetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "the instruction has no safe form")]
    // SAFETY: a hint that may name any address, here even one that may be read, and every x86-64 knows it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(value).cast());
    }
}

//! Prefetches memory that will be read soon.

/// Asks for the cache line that `value` begins in; only time can tell whether it was asked for.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_at(value);
}

/// Asks for the cache line of an address, which may be anything: to ask costs less than to make
/// sure that something is there.
#[inline(always)]
pub(crate) fn prefetch_at<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults and changes nothing, whatever the address; SSE is part
        // of every x86-64 processor.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

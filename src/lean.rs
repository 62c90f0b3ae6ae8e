//! What takes the place of `std` in the two wasm builds: its way to panic, with texts, places and formatting, is
//! 8.7 KB of each after gzip -9, and wasm has nowhere to print to. A panic is a trap, which JavaScript sees.

use core::sync::atomic::AtomicBool;

/// Whether a panic has left this instance of the wasm half-changed.
pub static BROKEN: AtomicBool = AtomicBool::new(false);

#[cfg(not(feature = "std"))]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    BROKEN.store(true, core::sync::atomic::Ordering::Relaxed);
    core::arch::wasm32::unreachable()
}

//! What the two wasm builds have in place of `std`, whose way to panic (texts, places, formatting) is
//! 8.7 KB of each after gzip -9; wasm has nowhere to print to. A panic is a trap, which JavaScript sees.

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

//! The allocator of the program. A process that embeds the host without the command line has its
//! own.
//!
//! Many operations are begun by one thread and ended by another. glibc's allocator is slow at that.
//! Huge pages are off: they double the memory of an idle host (decision 0028).

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

//! The allocator of the program. A process that embeds the host without the command line has its own.
//!
//! Many operations are begun by one thread and ended by another. glibc's allocator is slow at that: it took a fifth of the
//! time of a durable operation with 64 callers. Without huge pages, which would double the memory of a host that rests.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

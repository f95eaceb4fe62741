//! Gives memory back that a busy time has left. The allocator returns freed pages only while
//! something is allocated or freed, so an idle host would keep them.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(15);
/// Processor time within that, below which the host rests.
const RESTS: Duration = Duration::from_millis(300);
/// Processor time since memory was last given back, from which it is worth it again.
const WORTH_IT: Duration = Duration::from_secs(2);

/// Looks until it is dropped.
pub(super) async fn give_back_when_idle<T>() -> T {
    let (mut last, mut given_back) = (Duration::ZERO, Duration::ZERO);
    loop {
        tokio::time::sleep(EVERY).await;
        let now = spent();
        if now.saturating_sub(last) < RESTS && now.saturating_sub(given_back) > WORTH_IT {
            give_back();
            given_back = spent();
        }
        last = now;
    }
}

/// The processor time of this process.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn give_back() {
    purge();
    #[cfg(target_os = "linux")]
    if let Err(error) = unmap_program() {
        tracing::debug!(%error, "the pages of the program stay mapped");
    }
    tracing::debug!("free memory was given back to the system");
}

/// Returns the allocator's free pages to the system, those of all threads.
#[allow(unsafe_code, reason = "the only way to tell the allocator; see the comment at the call")]
fn purge() {
    use std::ptr::null_mut;
    // `MALLCTL_ARENAS_ALL`.
    let all = c"arena.4096.purge";
    // SAFETY: the name ends with a zero, and this control reads and writes no other memory. It
    // changes nothing that is in use, and may be called at any time from any thread.
    unsafe { tikv_jemalloc_sys::mallctl(all.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
}

/// Unmaps the code of the program: about 30 MiB after a busy time, most of which an idle host does
/// not run. The system keeps it in its cache of files and is free to use that memory; code that
/// runs again is mapped from there.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the system has no safe way to say it; see the comment at the call")]
fn unmap_program() -> std::io::Result<()> {
    use rustix::mm::{Advice, madvise};
    let here = unmap_program as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let code = maps.lines().find_map(|line| code_at(line, here));
    let Some((start, length)) = code else { return Ok(()) };
    // SAFETY: the range is the mapping of a file that this function is in. It was never writable,
    // so its pages are those of the file, and the system reads them again when they are used.
    unsafe { madvise(start as *mut _, length, Advice::LinuxDontNeed) }?;
    Ok(())
}

/// Where a line of `/proc/self/maps` begins and how long it is, if it is a file's code with this
/// address.
#[cfg(target_os = "linux")]
fn code_at(line: &str, address: usize) -> Option<(usize, usize)> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |digits| usize::from_str_radix(digits, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    // `p`: what this process would write is its own; without `w` it wrote nothing.
    let is_code = fields.next()? == "r-xp" && fields.nth(3)?.starts_with('/');
    (is_code && (start..end).contains(&address)).then_some((start, end - start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn resident() -> usize {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
            * rustix::param::page_size()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_was_freed_goes_back_although_something_behind_it_is_kept() {
        let (freed, kept): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
            (0..4_000).map(|_| (vec![1_u8; 16 << 10], vec![1_u8; 2_000])).unzip();
        drop(freed);
        let before = resident();
        give_back();
        assert!(resident() + (16 << 20) < before, "{before} {}", resident());
        drop(kept);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn only_code_of_a_file_that_holds_the_address_is_unmapped() {
        let line = |of: &str| format!("1000-3000 {of}");
        let file = "r-xp 00000000 fe:00 77 /usr/bin/memhost";
        assert_eq!(code_at(&line(file), 0x2fff), Some((0x1000, 0x2000)));
        for (of, address) in [
            (file, 0x3000),
            ("rwxp 00000000 fe:00 77 /usr/bin/memhost", 0x2000),
            ("r--p 00000000 fe:00 77 /usr/bin/memhost", 0x2000),
            ("r-xp 00000000 00:00 0", 0x2000),
            ("r-xp 00000000 00:00 0 [vdso]", 0x2000),
        ] {
            assert_eq!(code_at(&line(of), address), None, "{of}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_program_goes_on_without_its_code_in_memory() {
        let here = unmap_program as *const () as usize;
        let mapped = || {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let mut code = maps.lines().skip_while(|line| code_at(line, here).is_none());
            let size = code.find_map(|line| line.strip_prefix("Rss:")).unwrap();
            size.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        let before = mapped();
        unmap_program().unwrap();
        let after = mapped();
        assert!(after < before, "{before} {after}");
    }

    #[test]
    fn the_time_of_the_processor_counts_on() {
        let before = spent();
        let mut sum = 0_u64;
        while spent() < before + Duration::from_millis(2) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}

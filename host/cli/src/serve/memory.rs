//! Gives back the memory that a busy time has left. The allocator returns freed pages only while
//! something is allocated or freed, so an idle host would keep them.

#[cfg(target_os = "linux")]
use std::sync::LazyLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(15);
/// Processor time within that, below which the host rests.
const RESTS: Duration = Duration::from_millis(300);
/// Processor time since free pages were last returned, from which it is worth it again.
const WORTH_IT: Duration = Duration::from_secs(2);

/// Looks until it is dropped.
pub(super) async fn give_back_when_idle<T>() -> T {
    let (mut last, mut purged) = (Duration::ZERO, Duration::ZERO);
    loop {
        tokio::time::sleep(EVERY).await;
        let now = spent();
        if now.saturating_sub(last) < RESTS {
            if now.saturating_sub(purged) > WORTH_IT {
                purge();
                purged = spent();
            }
            // At each look: the little that an idle host does brings pages back all the time.
            #[cfg(target_os = "linux")]
            if let Err(error) = drop_program() {
                tracing::debug!(%error, "the program's pages stay");
            }
        }
        last = now;
    }
}

/// The processor time of this process.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the allocator's free pages to the system. What threads keep for themselves stays.
#[allow(unsafe_code, reason = "the only way to tell the allocator; see the comment at the call")]
fn purge() {
    use std::ptr::null_mut;
    // `MALLCTL_ARENAS_ALL`.
    let all = c"arena.4096.purge";
    // SAFETY: the name ends with a zero, and this control reads and writes no other memory. It
    // changes nothing that is in use, and may be called at any time from any thread. It cannot
    // fail: the name is one that jemalloc has.
    unsafe { tikv_jemalloc_sys::mallctl(all.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
}

/// Drops the pages of the program's code and constants: about 45 MiB after a busy time, little of
/// which an idle host uses. They stay in the system's cache of files, whose memory the system may
/// use for something else. What the host uses again comes back from there.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no safe call does it; see the comment at the call")]
fn drop_program() -> std::io::Result<()> {
    use rustix::mm::{Advice, madvise};
    // Reading it takes tens of milliseconds, and the program stays where it is. If it cannot be
    // read, nothing is dropped.
    static PROGRAM: LazyLock<Vec<(usize, usize)>> = LazyLock::new(|| {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        unwritten(&maps, drop_program as *const () as usize)
    });
    for (start, length) in &*PROGRAM {
        // SAFETY: the range is a mapping of the program's file that cannot be written and had no
        // page but the file's, so the system reads the same bytes again when they are used.
        unsafe { madvise(*start as *mut _, *length, Advice::LinuxDontNeed) }?;
    }
    Ok(())
}

/// Start and length of the mappings of the file that has this address, as `/proc/self/smaps` lists
/// them, without those that can be written and those with pages that were, such as the ones that
/// the loader has relocated.
#[cfg(target_os = "linux")]
fn unwritten(maps: &str, address: usize) -> Vec<(usize, usize)> {
    struct Mapping<'a> {
        start: usize,
        end: usize,
        file: &'a str,
        is_unwritten: bool,
    }
    let hex = |digits| usize::from_str_radix(digits, 16).ok();
    let mut all: Vec<Mapping<'_>> = Vec::new();
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (Some(first), Some(second)) = (fields.next(), fields.next()) else { continue };
        let range = first.split_once('-').and_then(|(from, to)| Some((hex(from)?, hex(to)?)));
        if let Some((start, end)) = range {
            let file = fields.nth(3).unwrap_or_default();
            all.push(Mapping { start, end, file, is_unwritten: !second.contains('w') });
        } else if first == "Anonymous:"
            && let Some(mapping) = all.last_mut()
        {
            mapping.is_unwritten &= second == "0";
        }
    }
    let own = all.iter().find(|mapping| (mapping.start..mapping.end).contains(&address));
    let file = own.map(|mapping| mapping.file).filter(|file| file.starts_with('/'));
    all.iter()
        .filter(|mapping| Some(mapping.file) == file && mapping.is_unwritten)
        .map(|mapping| (mapping.start, mapping.end - mapping.start))
        .collect()
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
        purge();
        assert!(resident() + (16 << 20) < before, "{before} {}", resident());
        drop(kept);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_dropped_is_the_programs_and_was_never_written() {
        let mapping = |range: &str, what: &str, anonymous: u32| {
            format!("{range} {what}\nRss: 8 kB\nAnonymous:          {anonymous} kB\n")
        };
        let program = |perms: &str| format!("{perms} 00000000 fe:00 77    /usr/bin/memhost");
        let maps = [
            mapping("1000-3000", &program("r--p"), 0),
            mapping("3000-8000", &program("r-xp"), 0),
            mapping("8000-9000", &program("r--p"), 4),
            mapping("9000-a000", &program("rw-p"), 0),
            mapping("a000-b000", "r-xp 00000000 fe:00 78 /usr/lib/libc.so.6", 0),
            mapping("b000-c000", "r-xp 00000000 00:00 0", 0),
        ]
        .concat();
        assert_eq!(unwritten(&maps, 0x7fff), [(0x1000, 0x2000), (0x3000, 0x5000)]);
        for elsewhere in [0xb000, 0xc000] {
            assert_eq!(unwritten(&maps, elsewhere), []);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_program_goes_on_when_its_pages_were_dropped() {
        let mapped = || {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let here = drop_program as *const () as usize;
            let all = unwritten(&maps, here);
            let (start, _) =
                *all.iter().find(|(at, size)| (*at..at + size).contains(&here)).unwrap();
            let mut own = maps.lines().skip_while(|line| !line.starts_with(&format!("{start:x}-")));
            let size = own.find_map(|line| line.strip_prefix("Rss:")).unwrap();
            size.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        // Other tests bring pages back meanwhile.
        let is_less = || {
            let before = mapped();
            drop_program().unwrap();
            mapped() < before
        };
        assert!((0..100).any(|_| is_less()));
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

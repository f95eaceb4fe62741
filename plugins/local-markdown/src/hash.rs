//! A hash that is the same in every version and on every platform. The standard library's hashes are not.

/// FNV-1a over both parts, then mixed so that its upper bits are as good as its lower ones. It is not
/// safe against deliberate collisions: where they matter, the values themselves are compared, too.
pub(crate) fn hash(kind: &[u8], bytes: &[u8]) -> u64 {
    let sum = kind
        .iter()
        .chain(&[0])
        .chain(bytes)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    sum ^ (sum >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_indexes_rely_on_these_values() {
        assert_eq!(hash(b"text", b"word"), hash(b"text", b"word"));
        assert_ne!(hash(b"text", b"word"), hash(b"name", b"word"));
        assert_eq!(format!("{:016x}", hash(b"", b"")), PINNED);
    }

    const PINNED: &str = "b9034ad37056f5fb";
}

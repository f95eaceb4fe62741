//! The place of a token in the table. The build script includes this file, too, so that both sides
//! agree.

/// Slots of the table, a power of two: about three of four are taken.
pub(crate) const SLOTS: usize = 1 << 18;
/// The content of an empty slot.
pub(crate) const EMPTY: u32 = 0x00ff_ffff;

/// The slot where the search for a token begins: FNV-1a, of which the upper bits are the better
/// ones.
pub(crate) fn first_slot(bytes: &[u8]) -> usize {
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (sum ^ (sum >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    usize::try_from(mixed).unwrap_or_default() % SLOTS
}

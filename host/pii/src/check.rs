//! What a check of the detector is.

use std::ops::Range;

use super::Finding;

/// Looks at the surroundings of an anchor in a text.
pub(super) type Check = fn(&str, Range<usize>) -> Option<Finding>;

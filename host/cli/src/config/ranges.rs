//! The ranges of numbers in a configuration file.

use crate::CliError;
use memhost_server::ConnectionOptions;

/// A value within its range.
pub(super) fn in_range<T: Copy + PartialOrd + std::fmt::Display>(
    key: &str,
    value: T,
    min: T,
    max: T,
) -> Result<T, CliError> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(CliError::input(key, format!("is {value}; must be {min} to {max}")))
}

/// The settings of connections, each within its range.
pub(super) fn in_ranges(connections: ConnectionOptions) -> Result<ConnectionOptions, CliError> {
    in_range("connections.max", connections.max, 16, 1_000_000)?;
    in_range("connections.max_per_address", connections.max_per_address, 1, 1_000_000)?;
    in_range("connections.max_bodies_bytes", connections.max_bodies_bytes, 16 << 20, 1 << 40)?;
    for (key, ms) in [
        ("connections.head_timeout_ms", connections.head_timeout_ms),
        ("connections.body_timeout_ms", connections.body_timeout_ms),
        ("connections.idle_timeout_ms", connections.idle_timeout_ms),
        ("connections.write_timeout_ms", connections.write_timeout_ms),
    ] {
        in_range(key, ms, 10, 3_600_000)?;
    }
    Ok(connections)
}

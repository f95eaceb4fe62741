//! What an agent tool gives its hooks: a payload and, behind a line of three hyphens, a transcript.
//! The same bytes are what a host answers, and the settings that the hooks are installed in.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memhost_agent_hooks::fuzzing;

/// What stands between a payload and its transcript.
const SEPARATOR: &[u8] = b"\n---\n";

fuzz_target!(|bytes: &[u8]| {
    let (payload, transcript) =
        match bytes.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
            Some(end) => (&bytes[..end], &bytes[end + SEPARATOR.len()..]),
            None => (bytes, bytes),
        };
    fuzzing::payload(payload, &String::from_utf8_lossy(transcript));
    if let Ok(text) = std::str::from_utf8(payload) {
        fuzzing::context(text);
        fuzzing::settings(text);
    }
});

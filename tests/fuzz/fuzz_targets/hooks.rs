//! What an agent tool gives its hooks: a payload, and after it, behind a zero byte, a transcript. The same bytes are what
//! a host answers, and the settings that the hooks are installed in.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memhost_agent_hooks::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    let (payload, transcript) = match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, bytes),
    };
    fuzzing::payload(payload, &String::from_utf8_lossy(transcript));
    if let Ok(text) = std::str::from_utf8(payload) {
        fuzzing::context(text);
        fuzzing::settings(text);
    }
});

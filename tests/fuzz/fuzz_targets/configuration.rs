//! A host's configuration file: options, or an error that says what is wrong.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = memhost_cli::read_for_fuzzing(text) {
        assert!(!error.is_empty());
    }
});

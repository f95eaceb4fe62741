//! Cursors: nobody makes one but the host, and one opens only where it was made for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memhost_types::{CursorKey, QueryDigest};

fuzz_target!(|input: (Vec<u8>, String, Vec<u8>, Vec<u8>)| {
    let (position, forged, one, other) = input;
    let key = CursorKey::new([7; 32]);
    let (digest, another) =
        (QueryDigest::new([one.as_slice()]), QueryDigest::new([other.as_slice()]));
    let sealed = key.seal(&digest, &position);
    assert_eq!(key.open(&digest, &sealed).unwrap(), position);
    assert!(one == other || key.open(&another, &sealed).is_err());
    // The fuzzer remembers cursors that it saw being compared; each is the only spelling of its
    // position.
    if let Ok(position) = key.open(&digest, &forged) {
        assert_eq!(key.seal(&digest, &position), forged);
    }
});

//! Signatures of components: only the very bytes that were signed, with the very comment, are
//! accepted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memhost_core::plugins::{TrustedKey, verify};

/// From the tests of `minisign-verify`; made by `minisign`.
const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
const SIGNATURE: &str = "untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==";

fuzz_target!(|input: (Vec<u8>, Vec<(u16, u8)>, String)| {
    let (file, patches, text) = input;
    if let Ok(key) = text.parse::<TrustedKey>() {
        assert_eq!(key.to_string().parse::<TrustedKey>().unwrap(), key);
    }
    let key: TrustedKey = KEY.parse().unwrap();
    let mut signature = SIGNATURE.as_bytes().to_vec();
    for (place, byte) in patches {
        let place = usize::from(place) % signature.len();
        signature[place] = byte;
    }
    for signature in [String::from_utf8_lossy(&signature).into_owned(), text] {
        for file in [file.as_slice(), b"test"] {
            if let Ok(verified) = verify(file, &signature, std::slice::from_ref(&key)) {
                assert_eq!(
                    (file, verified.trusted_comment.as_str()),
                    (&b"test"[..], "timestamp:1556193335\tfile:test")
                );
            }
        }
    }
});

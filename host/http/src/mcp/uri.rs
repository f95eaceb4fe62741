//! Records as addresses: `memory://{provider}/{record}`. The company is in none of them: it comes
//! from the token.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use memhost_types::{ProviderKey, RecordHandle, RecordId, TextId};

const SCHEME: &str = "memory://";
/// The characters that are not escaped in an address (RFC 3986, 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The template of all addresses.
pub(super) const TEMPLATE: &str = "memory://{providerKey}/{recordId}";

/// A record's address.
pub(super) fn uri(handle: &RecordHandle) -> String {
    let id = utf8_percent_encode(handle.provider_record_id.as_str(), ENCODED);
    format!("{SCHEME}{}/{id}", handle.provider_key)
}

/// The record at an address. None: the address names no record.
pub(super) fn parse(uri: &str) -> Option<RecordHandle> {
    let (provider, id) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let id = percent_decode_str(id).decode_utf8().ok()?;
    Some(RecordHandle {
        provider_key: ProviderKey::parse(provider).ok()?,
        provider_record_id: RecordId::parse(&id).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_address_names_its_record(
            provider in "[a-z0-9][a-z0-9._-]{0,20}", id in "\\PC{1,60}",
        ) {
            let handle = RecordHandle {
                provider_key: ProviderKey::parse(&provider).unwrap(),
                provider_record_id: RecordId::parse(&id).unwrap(),
            };
            let address = uri(&handle);
            prop_assert!(address.is_ascii() && !address.contains(' '));
            prop_assert_eq!(parse(&address), Some(handle));
        }

        #[test]
        fn anything_else_is_none(text in "\\PC{0,60}") {
            if let Some(handle) = parse(&text) {
                prop_assert_eq!(parse(&uri(&handle)), Some(handle));
            }
        }
    }

    #[test]
    fn other_schemes_and_cut_addresses_are_none() {
        for text in [
            "file:///etc/passwd",
            "memory://",
            "memory://p",
            "memory:///x",
            "memory://P/x",
            "memory://p/",
            "m",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

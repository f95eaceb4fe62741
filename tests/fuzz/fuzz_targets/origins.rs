//! Where a request goes: what is granted has one spelling, and no other parser reads another host
//! out of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memhost_types::{HttpTarget, Origin};

fuzz_target!(|input: (String, String)| {
    let (origin, authority) = input;
    if let Ok(parsed) = origin.parse::<Origin>() {
        assert_eq!(parsed.to_string().parse::<Origin>().unwrap(), parsed);
        assert!(parsed.includes(&parsed));
    }
    let Ok(target) = HttpTarget::parse(Some("https"), &authority) else { return };
    let own: Origin = target.to_string().parse().unwrap();
    assert!(own.allows(&target));
    if let Ok(read) = authority.parse::<http::uri::Authority>() {
        let host = read.host().trim_end_matches('.').to_ascii_lowercase();
        let ours = target.host().to_string();
        // An address may be written in more than one way; a name may not.
        let is_address = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
        assert!(is_address || host == ours, "{host} and {ours}");
    }
});

//! Tests of origins, targets and their hosts.

use std::net::{IpAddr, Ipv4Addr};

use super::*;
use proptest::prelude::*;

fn origin(text: &str) -> Origin {
    text.parse().unwrap()
}

#[test]
fn origins_have_one_spelling() {
    for (given, canonical) in [
        ("https://API.Example.com", "https://api.example.com"),
        ("HTTPS://a.example:443/", "https://a.example"),
        ("http://a.example:80", "http://a.example"),
        ("http://a.example:0443", "http://a.example:443"),
        ("https://a.example.", "https://a.example"),
        ("https://*.Example.com:8443", "https://*.example.com:8443"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1"),
        ("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("https://my_host.1a", "https://my_host.1a"),
    ] {
        assert_eq!(origin(given).to_string(), canonical);
        assert_eq!(serde_json::to_string(&origin(given)).unwrap(), format!("\"{canonical}\""));
        assert_eq!(
            serde_json::from_str::<Origin>(&format!("\"{given}\"")).unwrap(),
            origin(canonical)
        );
    }
    assert!(
        serde_json::from_str::<Origin>("\"ftp://a\"").unwrap_err().to_string().contains("`ftp`")
    );
}

#[test]
fn what_is_no_origin_is_refused_with_the_reason() {
    let long_label = format!("https://{}.example", "a".repeat(64));
    let long_host = format!("https://{}example", "abc.".repeat(62));
    assert!(long_host.len() > "https://".len() + 253);
    for (text, reason) in [
        ("", "no scheme"),
        ("a.example", "no scheme"),
        ("https:a.example", "no scheme"),
        ("ftp://a.example", "`ftp`"),
        (" https://a.example", "` https`"),
        ("https://me@a.example", "user info"),
        ("https://a.example@b.example", "user info"),
        ("https://a.example/v1", "path"),
        ("https://a.example//", "path"),
        ("https://a.example?x=1", "query"),
        ("https://a.example/?", "query"),
        ("https://a.example#x", "fragment"),
        ("https://a.example/#", "fragment"),
        ("https://", "empty"),
        ("https://.", "empty"),
        ("https://:80", "empty"),
        ("https://a..example", "empty label"),
        ("https://.a.example", "empty label"),
        ("https://a.example..", "empty label"),
        (&long_label, "63 bytes"),
        (&long_host, "253 bytes"),
        ("https://bücher.example", "punycode"),
        ("https://a.exam\u{ff0e}ple", "punycode"),
        ("https://a\\b.example", "character '\\\\'"),
        ("https://a%2eexample", "character '%'"),
        ("https://a b", "character ' '"),
        ("https://a.example\n", "character '\\n'"),
        ("https://a.*.example", "character '*'"),
        ("https://a*.example.com", "character '*'"),
        ("https://*.*.example.com", "character '*'"),
        ("https://*", "character '*'"),
        ("https://*.", "character '*'"),
        ("https://*.com", "two labels"),
        ("https://*.com.", "two labels"),
        ("https://*.10.0.0.1", "IPv4"),
        ("https://0x7f.1", "IPv4"),
        ("https://127.1", "IPv4"),
        ("https://127.1.", "IPv4"),
        ("https://0177.0.0.1", "IPv4"),
        ("https://2130706433", "IPv4"),
        ("https://0X7F000001", "IPv4"),
        ("https://1.2.3.0x4", "IPv4"),
        ("https://1.2.3.256", "IPv4"),
        ("https://1.2.3.4.5", "IPv4"),
        ("https://a.example.1", "IPv4"),
        ("https://::1", "brackets"),
        ("https://[::1", "brackets"),
        ("https://[::1]x", "brackets"),
        ("https://[::1].", "brackets"),
        ("https://[fe80::1%25eth0]", "brackets"),
        ("https://[127.0.0.1]", "brackets"),
        ("https://a.example:80:80", "brackets"),
        ("https://a.example:", "port"),
        ("https://a.example:0", "port"),
        ("https://a.example:+80", "port"),
        ("https://a.example:65536", "port"),
        ("https://a.example:http", "port"),
    ] {
        let error = text.parse::<Origin>().unwrap_err().to_string();
        assert!(error.contains(reason), "{text:?}: {error}");
    }
    for text in [
        "https://me:hunter2@a.example",
        "me:hunter2@a.example",
        "https://me:h@nter2/hunter2@a.example",
    ] {
        let error = text.parse::<Origin>().unwrap_err().to_string();
        assert!(!error.contains("nter2") && error.contains("`…@a.example`"), "{error}");
        assert!(!Target::parse(None, text).unwrap_err().to_string().contains("nter2"));
    }
    assert!(
        format!("{}://a", "x".repeat(5000)).parse::<Origin>().unwrap_err().to_string().len() < 300
    );
}

#[test]
fn an_origin_matches_only_its_own_scheme_host_and_port() {
    for (granted, scheme, authority, expected) in [
        ("https://a.example", None, "a.example", true),
        ("https://a.example", Some("HTTPS"), "A.Example.:443", true),
        ("https://a.example", Some("http"), "a.example", false),
        ("https://a.example", Some("http"), "a.example:443", false),
        ("https://a.example", Some("ftp"), "a.example", false),
        ("https://a.example", None, "a.example:8443", false),
        ("https://a.example", None, "x.a.example", false),
        ("https://a.example", None, "a.example.evil.test", false),
        ("https://a.example", None, "a.example@evil.test", false),
        ("https://a.example", None, "me@a.example", false),
        ("https://a.example", None, "evil.test#@a.example", false),
        ("https://a.example", None, "a.example/x", false),
        ("https://a.example", None, "a.example:", false),
        ("https://a.example", None, "a.example..", false),
        ("https://a.example", None, "", false),
        ("http://a.example:8080", Some("http"), "a.example:8080", true),
        ("https://*.example.com", None, "x.example.com", true),
        ("https://*.example.com", None, "x.y.example.com.", true),
        ("https://*.example.com", None, "example.com", false),
        ("https://*.example.com", None, ".example.com", false),
        ("https://*.example.com", None, "badexample.com", false),
        ("https://*.example.com", None, "*.example.com", false),
        ("http://127.0.0.1", Some("http"), "127.0.0.1", true),
        ("http://127.0.0.1", Some("http"), "127.1", false),
        ("http://127.0.0.1", Some("http"), "[::ffff:127.0.0.1]", false),
        ("http://[::1]:80", Some("http"), "[0:0::1]", true),
        ("http://[::1]", Some("http"), "::1", false),
    ] {
        assert_eq!(
            origin(granted).matches(scheme, authority),
            expected,
            "{granted}, {scheme:?}, {authority}"
        );
    }
    let target = Target::parse(Some("http"), "A.example").unwrap();
    assert_eq!(
        (target.scheme(), target.port(), target.to_string().as_str()),
        (Scheme::Http, 80, "http://a.example")
    );
    assert_eq!(target.host(), &Host::Domain("a.example".to_owned()));
}

// Without `x`: a last label such as `0xa` is refused.
const HOST: &str = r"[a-w0-9_-]{0,8}[a-w](\.[a-w0-9]{0,3}[a-w_]){0,3}";
// Few letters, so that hosts which are equal, or one within the other, come up often.
const NEAR: &str = r"(\*\.)?(a\.|ab\.|B\.){0,2}a\.b(\.|@a\.b|/)?(:443)?";

fn any_origin() -> impl Strategy<Value = String> {
    let domain = (prop::bool::ANY, HOST).prop_map(|(wild, name)| {
        if wild && name.contains('.') { format!("*.{name}") } else { name }
    });
    let v4 = any::<Ipv4Addr>().prop_map(|ip| ip.to_string());
    let v6 = any::<Ipv6Addr>().prop_map(|ip| format!("[{ip}]"));
    let port = prop::option::of(1..=u16::MAX)
        .prop_map(|port| port.map_or(String::new(), |port| format!(":{port}")));
    ("https?", prop_oneof![domain, v4, v6], port)
        .prop_map(|(scheme, host, port)| format!("{scheme}://{host}{port}"))
}

proptest! {
    #[test]
    fn an_origin_reads_back_from_its_text(text in any_origin()) {
        let once = origin(&text);
        prop_assert_eq!(origin(&once.to_string()), once);
    }

    #[test]
    fn an_allowed_target_is_never_of_another_host(host in NEAR, authority in NEAR) {
        if let Ok(granted) = format!("https://{host}").parse::<Origin>()
            && granted.matches(None, &authority) {
            let plain = |text: &str| text
                .split(':')
                .next()
                .unwrap()
                .trim_end_matches(['.', '/'])
                .to_lowercase();
            match plain(&host).strip_prefix('*') {
                Some(parent) => prop_assert!(plain(&authority).ends_with(parent)),
                None => prop_assert_eq!(plain(&host), plain(&authority)),
            }
        }
    }

    // A request is sent by code that reads the authority with `http`: both must see the same host
    // and port.
    #[test]
    fn a_target_is_read_as_http_reads_it(authority in r"[a-c0-9x:@.\[\]%_A*-]{1,12}") {
        if let (Ok(target), Ok(http)) = (
            Target::parse(None, &authority), authority.parse::<http::uri::Authority>(),
        ) {
            let host = http.host().to_lowercase();
            let same = match target.host() {
                Host::Ip(IpAddr::V6(ip)) => host.trim_matches(['[', ']']).parse() == Ok(*ip),
                name => host.strip_suffix('.').unwrap_or(&host) == name.to_string(),
            };
            prop_assert!(same, "{} is {} for http", target, http.host());
            prop_assert_eq!(target.port(), http.port_u16().unwrap_or(443));
        }
    }

    #[test]
    fn no_text_is_a_panic(text: String) {
        let _ = text.parse::<Origin>();
        let _ = Target::parse(Some(&text), &text);
    }
}

//! Tests of the detector: a table of texts, the promises of the public functions and hostile input.
//!
//! Every number, address and token here is made up, reserved for documentation or a published test value. Token
//! prefixes are split with `concat!`, so that scanners for leaked credentials do not report this file.

use super::PiiKind::{Card, Email, Hint, Iban, IpAddress, Passport, Phone, Redacted, Secret, Ssn};
use super::{Finding, PiiKind, PiiRisk, redact, risk, rules, scan};
use regex::Regex;
use std::borrow::Cow;

/// Texts with the kinds that a scan must find, in order.
const POSITIVE: &[(&str, &[PiiKind])] = &[
    // E-mail
    ("Write to jane.doe+news@example.com today.", &[Email]),
    ("<jane@example.co.uk>, (bob@mail.example.org)", &[Email, Email]),
    ("Signed-off-by: Jürgen Groß <jürgen.groß@example.de>", &[Email]),
    ("**jane@example.com** is bold", &[Email]),
    ("请发邮件至info@example.com谢谢", &[Email]),
    ("jane＠example．com", &[Email]),
    ("jane@xn--bcher-kva.example and jane@bücher.example", &[Email, Email]),
    ("mail jane@example.com.", &[Email]),
    ("a@b@jane@example.com", &[Email]),
    ("jane@example.com-2024", &[Email]),
    // Phone
    ("+1 (415) 555-0132", &[Phone]),
    ("Call +14155550132 now", &[Phone]),
    ("+44 20 7946 0958", &[Phone]),
    ("+49 (0)30 23125 012", &[Phone]),
    ("+33.1.99.00.12.34", &[Phone]),
    ("0049 30 23125012", &[Phone]),
    ("电话+8613800000000谢谢", &[Phone]),
    ("(415) 555-0132 or 415.555.0132 or 415 555 0132", &[Phone, Phone, Phone]),
    ("1-800-555-0199", &[Phone]),
    ("415-555-0132x12", &[Phone]),
    ("415‑555‑0132 with typographic hyphens", &[Phone]),
    ("+４４ ２０ ７９４６ ０９５８", &[Phone]),
    ("tel:4155550132", &[Phone]),
    ("+44 20 7946 0958+49 30 23125 012", &[Phone, Phone]),
    ("+201011234567 is not a date", &[Phone]),
    ("Phone: 020 7946 0958", &[Phone]),
    ("phone_number=01632960001", &[Phone]),
    ("電話：090-0000-0000です", &[Phone]),
    ("my phone number is 415-555-0132", &[Hint, Phone]),
    // Card
    ("4111 1111 1111 1111", &[Card]),
    ("card #4111-1111-1111-1111.", &[Card]),
    ("5555555555554444", &[Card]),
    ("378282246310005", &[Card]),
    ("3782 822463 10005", &[Card]),
    ("6011111111111117, 3530111333300000, 30569309025904", &[Card, Card, Card]),
    ("visa 4222222222222 exp 12/27", &[Card]),
    ("4111\u{a0}1111\u{a0}1111\u{a0}1111", &[Card]),
    ("+45 32 12 34 56 4111 1111 1111 1111", &[Phone]),
    // IBAN
    ("IBAN DE89 3704 0044 0532 0130 00", &[Iban]),
    ("GB29NWBK60161331926819", &[Iban]),
    ("FR1420041010050500013M02606, NL91ABNA0417164300", &[Iban, Iban]),
    ("iban:mt84malt011000012345mtlcast001s", &[Iban]),
    ("NO93 8601 1117 947 is short", &[Iban]),
    // SSN
    ("SSN 123-45-6789", &[Ssn]),
    ("ssn: 899-99-0001", &[Hint, Ssn]),
    // Addresses
    ("login from 8.8.8.8:443", &[IpAddress]),
    ("email:[email], phone=[phone]", &[Redacted, Redacted]),
    ("http://1.1.1.1/path and 9.9.9.9.", &[IpAddress, IpAddress]),
    ("8.8.4.4-8.8.8.8", &[IpAddress, IpAddress]),
    ("peer [2001:4860:4860::8888]:53", &[IpAddress]),
    ("from 2a00:1450:4001:81b::200e: timeout", &[IpAddress]),
    ("::ffff:8.8.8.8", &[IpAddress]),
    ("inet 77.1.2.3/24", &[IpAddress]),
    // Credentials
    (concat!("AK", "IAIOSFODNN7EXAMPLE"), &[Secret]),
    (concat!("gh", "p_0123456789abcdefghijABCDEFGHIJ456789"), &[Secret]),
    (concat!("github", "_pat_11ABCDEFG0123456789_abcdefghijklmnop"), &[Secret]),
    (concat!("xox", "b-123456789012-abcdefABCDEF"), &[Secret]),
    (concat!("sk", "-proj-0123456789abcdefABCDEF0123"), &[Secret]),
    (concat!("sk", "_live_0123456789abcdefABCDEF"), &[Secret]),
    (concat!("AI", "zaSyA0123456789abcdefghijklmnopqrstuv"), &[Secret]),
    (concat!("ey", "JhbGciOiJIUzI1NiJ9.", "ey", "JzdWIiOiIxMjM0In0.c2lnbmF0dXJl"), &[Secret]),
    ("Authorization: Bearer 0123456789abcdef0123456789", &[Secret]),
    (
        concat!("-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEowIBAAKCAQEA0123\nabc=\n-----END RSA ", "PRIVATE KEY-----"),
        &[Secret],
    ),
    (concat!("-----BEGIN ", "PRIVATE KEY-----\\nMIIEowIBAAKCAQEA0123456\\ncut off"), &[Secret]),
    ("password: hunter2hunter2", &[Secret]),
    ("password=correct-horse-battery", &[Secret]),
    ("DB_PASSWORD='p4ss,w0rd!'", &[Secret]),
    ("{\"password\":\"s3cretvalue\",\"user\":1}", &[Secret]),
    ("{\\\"api_key\\\":\\\"0a1b2c3d4e\\\"}", &[Secret]),
    ("https://api.invalid/?api_key=0a1b2c3d4e&page=2", &[Secret]),
    ("let password: &str = \"s3cretvalue\";", &[Secret]),
    ("**Password:** hunter2hunter2", &[Secret]),
    ("my password is hunter2hunter2!", &[Secret]),
    ("let password = b\"hunter2hunter2\";", &[Secret]),
    ("env: PASSWORD=hunter2hunter2\\nUSER=x", &[Secret]),
    ("const API_KEY: &'static str = r#\"0a1b2c3d4e\"#;", &[Secret]),
    ("hashed_password: \"$2b$12$abcdefghijklmnopqrstuv\"", &[Secret]),
    ("client_secret => 0a1b2c3d4e", &[Secret]),
    ("secret_key = /bPxRfiCYEXAMPLEKEY/wJalrXUtnFEMI0", &[Secret]),
    // Passport
    ("passport number: X1234567", &[Hint, Passport]),
    ("Passport No. 123456789", &[Passport]),
    // Redacted before, or only hinted at
    ("mail to [EMAIL] or <redacted>", &[Redacted, Redacted]),
    ("j***@example.com and joe@e***.com", &[Redacted, Redacted]),
    ("***n@example.com, xxxx@example.com", &[Redacted, Redacted]),
    ("XXX-XX-1234", &[Redacted]),
    ("card ****1234 or **** **** **** 1234", &[Redacted, Redacted]),
    ("(xxx) xxx-0132", &[Redacted]),
    ("[phone] [card] [iban] [ssn] [ip-address] [secret] [passport]", &[Redacted; 7]),
    ("<PHONE_NUMBER> {{EMAIL}} [NAME_1] [REDACTED: address]", &[Redacted; 4]),
    ("password: [secret]", &[Redacted]),
    ("password: ********", &[Redacted]),
    ("password: abc*****xyz", &[Redacted]),
    ("api_key=<your-api-key>", &[Redacted]),
    ("password: generated", &[Hint]),
    ("api_key: 'my-service-key'", &[Hint]),
    ("What is your date of birth?", &[Hint]),
    ("You can call me at noon", &[Hint]),
    ("My home address is secret", &[Hint]),
];

/// Engineering prose in which nothing is personal data.
const NEGATIVE: &[&str] = &[
    // Hashes, ids and timestamps
    "commit 3f2a9c1e4b7d8e6f5a4b3c2d1e0f9a8b7c6d5e4f",
    "reverted in 4155550 and 1234567",
    "550e8400-e29b-41d4-a716-446655440000",
    "00000000-0000-0000-0000-000000000000",
    "12345678-1234-4234-8234-123456789012",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "PAP-1274 blocks PAP-1301, see #4155 and !2671",
    "RFC-415-555-2671 is no number",
    "started at 1700000000, ended at 1700000000123",
    "span 1700000000123456789 took 415 ms",
    "2024-01-15T10:30:00.123456+01:00",
    "20240115103000",
    "Mon, 15 Jan 2024 10:30:00 +0100",
    "on 2024/01/15, 15.01.2024 or 01-15-2024",
    "the years 2019–2020 and 1999-2004",
    "+2024-01-15 was added by the diff",
    "+20240115 and +1700000000 too",
    "@@ -120,7 +120,9 @@ fn main()",
    "mobile: 2024-01-01",
    // Versions and outlines
    "regex 1.11.1, serde v1.0.219, node 22.3.0",
    "version 1.2.3.4 and v1.2.3.4",
    "upgraded foo from 1.2.3.4 to 1.2.3.5",
    "package-1.2.3.4.tar.gz, foo==1.2.3.4, foo>=1.2.3.4",
    "Chrome/91.0.44.124 Safari/537.36",
    "see section 4.2.1.3 of the standard",
    "1.3.6.1.4.1.311 is an object identifier",
    "lodash@4.17.21 and @types/node@18.0.0",
    "npm i pkg@1.2.0-beta.rc",
    // Addresses that are nobody's
    "http://localhost:8080/health",
    "listens on 127.0.0.1:3000 and 0.0.0.0:80",
    "10.0.0.1, 192.168.1.20, 172.16.0.5 and 169.254.169.254",
    "192.0.2.1, 198.51.100.7, 203.0.113.9 and 100.64.0.1",
    "mask 255.255.255.0, multicast 224.0.0.1",
    "allow 8.8.8.0/24 and 2a00:1450::/32",
    "::1, fe80::1, fd00::1 and 2001:db8::1",
    "std::collections::HashMap and a::b::c at 12:34:56",
    "MAC 20:01:0d:b8:85:a3",
    // Ports, prices and other numbers
    "ports 443 631 8080 are open",
    "ports 8080, 8443, 9090-9099",
    "ports: 4000 4001 4002 4003 4004 4005",
    "status 200 404 5000",
    "it costs $1,299.00 or 415.55 EUR",
    "0.4111111111111111 and 4111111111111111.5",
    "4111 1111 1111 1112",
    "1234 5678 9012 3456",
    "0x4111111111111111",
    "12 415 555 2671 14",
    "911-211-4155 and 000-12-3456, 666-12-3456, 900-12-3456",
    "123-00-4567, 123-45-0000 and 9123-45-6789",
    "0031 0032 0033 0034",
    "DE89 3704 0044 0532 0130 01",
    "DE89370400440532013000AB",
    "1920x1080, 3840x2160@60, 44100 Hz",
    "for i in 100..200 { sum += 12345678; }",
    "x = y +49170 + 1234",
    // Code, paths and remotes
    "git clone git@github.com:org/repo.git",
    "assets/icon@2x.png and getty@tty1.service",
    "@Override public void run() {}",
    "format!(\"{user}@example.com\") and _@example.com",
    "y = A @ B.T + C@D",
    "/usr/lib/x86_64-linux-gnu/libfoo.so.1.2.3.4",
    "C:\\Users\\build\\target\\debug",
    "fn login(user: &str, password: &str) -> Result<Token>",
    "password: String, token: CancellationToken",
    "password = std::env::var(\"DB_PASSWORD\")?",
    "pub const WRONG_PASSWORD: WIN32_ERROR = 1323u32;",
    "pub const BLANK_PASSWORD: HRESULT = 0x80550004;",
    "pub const OID_PASSWORD: &str = \"2.5.4.35.1.1\";",
    "let sk = SecretKey::from_base64(sk)?; secret: pkcs8::PrivateKeyInfoRef<'_>",
    "let secret = vld1q_u64(base); prompt_password(\"Your password: \").unwrap()",
    "WSTR_PASSWORD: PCWSTR = core::w!(\"ChangePassword1\"), GUID_SECRET: GUID = GUID::from_u128(0x60)",
    "Login { secret_key: *secret_key, password: &self.password }",
    "100000000+200000000-300000000, nc <IP> <PORT>, [masked_start, xor_key]",
    "the `secret` is non-empty, shared_secret: SharedSecret",
    "password=$DB_PASSWORD api_key=${API_KEY} secret={{ vault }}",
    "api_key = os.environ[\"API_KEY\"]",
    "password = settings.db_password",
    "secret: /run/secrets/db_password_1",
    "Reset your password: https://docs.invalid/reset1",
    "The password is required, and the secret is rotated.",
    "class=\"sk-folding-cube-wrapper-container\"",
    "risk-management-0123456789abcdef",
    "grep -- '-----BEGIN PRIVATE KEY-----' *.pem",
    "tokens: &[Token], size_of::<Email>(), Vec<Phone>, <Secret as Trait>",
    "datetime!(+999999-12-31 23:59:59) and p(b\"+255959.999\")",
    "+44 is a country code, +2024.5 is not",
    "the crate was born on top of another",
    "row[phone] = map<Email>; send(email); webpack [name].js",
    "cargo new <name> --bin",
    "import passport from 'passport'; // passport 0.7.0",
    "the telephone book sample has 12345 rows",
    "/*** 2024 ***/ and 2**10",
    "",
];

fn kinds(found: &[Finding]) -> Vec<PiiKind> {
    found.iter().map(|finding| finding.kind).collect()
}

fn all_samples() -> impl Iterator<Item = &'static str> {
    POSITIVE.iter().map(|(text, _)| *text).chain(NEGATIVE.iter().copied())
}

/// Checks every promise of the public functions for one text.
fn check_promises(text: &str) {
    let found = scan(text);
    let mut end = 0;
    for finding in &found {
        assert!(finding.range.start >= end && finding.range.start < finding.range.end, "{text:?}: {found:?}");
        assert!(text.get(finding.range.clone()).is_some(), "{text:?}: {found:?}");
        end = finding.range.end;
    }
    assert_eq!(risk(text), found.iter().map(|finding| finding.risk).max().unwrap_or(PiiRisk::None));
    let once = redact(text);
    assert!(risk(&once) <= PiiRisk::Possible, "{text:?} became {once:?}: {:?}", scan(&once));
    assert_eq!(redact(&once), once, "{text:?}");
    if risk(text) < PiiRisk::High {
        assert!(matches!(once, Cow::Borrowed(same) if same == text), "{text:?}");
    }
}

#[test]
fn every_pattern_compiles_and_none_matches_nothing() {
    for (pattern, _) in rules::SPECS {
        let regex = Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        assert!(!regex.is_match(""), "{pattern}");
    }
    assert_eq!(rules::RULES.len(), rules::SPECS.len());
}

#[test]
fn finds_the_expected_kinds() {
    let failures: Vec<_> = POSITIVE
        .iter()
        .map(|(text, want)| (text, *want, scan(text)))
        .filter(|(_, want, got)| kinds(got) != *want)
        .collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(POSITIVE.len() >= 60);
}

#[test]
fn finds_nothing_in_engineering_prose() {
    let failures: Vec<_> = NEGATIVE.iter().map(|text| (text, scan(text))).filter(|(_, got)| !got.is_empty()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(NEGATIVE.len() >= 60);
}

#[test]
fn weak_kinds_are_possible_and_the_others_depend_on_the_value() {
    for finding in all_samples().flat_map(scan) {
        let weak = matches!(finding.kind, Redacted | Hint);
        assert_eq!(finding.risk == PiiRisk::Possible, weak, "{finding:?}");
    }
}

#[test]
fn ranges_cover_exactly_the_data() {
    let cases = [
        ("Mail **jane@example.com**, please.", "jane@example.com"),
        ("tel. +1 (415) 555-0132, ask for J.", "+1 (415) 555-0132"),
        ("phone: (415) 555-0132", "(415) 555-0132"),
        ("call ４１５-555-0132 today", "４１５-555-0132"),
        ("pay 4111 1111 1111 1111 12/27 123", "4111 1111 1111 1111"),
        ("IBAN: DE89 3704 0044 0532 0130 00.", "DE89 3704 0044 0532 0130 00"),
        ("{\"password\":\"s3cret,value\",\"x\":1}", "s3cret,value"),
        ("login(password=\"s3cretvalue\")", "s3cretvalue"),
        ("from 2a00:1450:4001:81b::200e: timeout", "2a00:1450:4001:81b::200e"),
        ("passport: X1234567.", "X1234567"),
    ];
    for (text, want) in cases {
        let got: Vec<_> = scan(text).into_iter().filter(|f| f.risk == PiiRisk::High).map(|f| &text[f.range]).collect();
        assert_eq!(got, [want], "{text:?}");
    }
}

#[test]
fn redaction_names_the_kind_and_keeps_the_rest() {
    let cases = [
        ("Mail jane@example.com or call 415-555-0132.", "Mail [email] or call [phone]."),
        ("4111 1111 1111 1111 / DE89370400440532013000", "[card] / [iban]"),
        ("123-45-6789 from 8.8.8.8", "[ssn] from [ip-address]"),
        ("password: \"s3cretvalue\", passport X1234567", "password: \"[secret]\", passport [passport]"),
        ("jane＠example．com – и всё", "[email] – и всё"),
        ("a@example.com@example.org", "[email]"),
        // Two findings that overlap leave no fragment of the one that gave way.
        ("+45 32 12 34 56 4111 1111 1111 1111", "[phone]"),
        ("[EMAIL] stays, and so does 10.0.0.1", "[EMAIL] stays, and so does 10.0.0.1"),
    ];
    for (text, want) in cases {
        assert_eq!(redact(text), want, "{text:?}");
    }
}

#[test]
fn a_text_that_does_not_settle_is_withheld() {
    // Each number can only be seen when the one before it is gone.
    assert_eq!(redact(&"+4930123456".repeat(3)), "[phone][phone][phone]");
    assert_eq!(redact(&"+4930123456".repeat(30)), "[redacted]");
}

#[test]
fn risk_levels_are_ordered_numbers() {
    for (level, want) in [PiiRisk::None, PiiRisk::Possible, PiiRisk::High].into_iter().enumerate() {
        assert_eq!(usize::from(want.level()), level);
        assert_eq!(PiiRisk::from_level(want.level()), Some(want));
    }
    assert_eq!(PiiRisk::from_level(3), None);
    assert!(PiiRisk::None < PiiRisk::Possible && PiiRisk::Possible < PiiRisk::High);
    assert_eq!(risk("plain words"), PiiRisk::None);
    assert_eq!(risk("date of birth"), PiiRisk::Possible);
    assert_eq!(risk("[EMAIL] and jane@example.com"), PiiRisk::High);
}

#[test]
fn promises_hold_for_all_samples_and_their_neighbours() {
    let samples: Vec<_> = all_samples().collect();
    for pair in samples.windows(2) {
        check_promises(pair[0]);
        for glue in ["", " ", "-", ".", "@", "\n"] {
            check_promises(&[pair[0], pair[1]].join(glue));
        }
    }
}

#[test]
fn promises_hold_for_random_mixtures() {
    const PARTS: &[&str] = &[
        "@",
        ".",
        "-",
        " ",
        "+",
        "(",
        ")",
        "/",
        ":",
        "=",
        "\"",
        "\\",
        "*",
        "***",
        "[",
        "]",
        "<",
        "_",
        "&",
        "\n",
        "é",
        "電話",
        "１",
        "\u{a0}",
        "1",
        "00",
        "12",
        "415",
        "555",
        "0132",
        "4111",
        "1111",
        "11111111",
        "8.8",
        "2a00:",
        "::",
        "x",
        "a",
        "com",
        "example.com",
        "password",
        "api_key",
        "passport",
        "phone",
        "is",
        "DE89",
        "37040044",
        "05320130",
        "[email]",
        "[secret]",
        "hunter22",
        "sk-",
        "ghp_",
        "eyJ",
        "abcdefgh12345678",
        "-----BEGIN PRIVATE KEY-----",
        "-----END ",
        "bearer ",
        "123-45-6789",
        "a@b.cc",
        "+49 30 23125",
        "8.8.8.8",
        "git",
    ];
    // A fixed xorshift generator, so that a failure can be repeated.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for _ in 0..4000 {
        let len = 1 + next(14);
        let text: String = (0..len).map(|_| PARTS[next(PARTS.len())]).collect();
        check_promises(&text);
    }
}

#[test]
fn a_mebibyte_of_hostile_text_is_scanned() {
    let fill = |part: &str| part.repeat((1 << 20) / part.len());
    for part in ["1", "4", "a@a.a@a.a"] {
        let text = fill(part);
        assert!(risk(&text) <= PiiRisk::High);
    }
    assert_eq!(redact(&fill("a@a.aa ")).len(), "[email] ".len() * ((1 << 20) / "a@a.aa ".len()));
}

#[test]
fn other_hostile_texts_are_scanned() {
    let parts = [
        "1 ",
        "4111 ",
        "+1 ",
        "1:",
        "a:",
        ":",
        "*",
        "x",
        "@",
        "@*",
        "(",
        "phone((",
        "password:",
        "password:a1",
        "secret: ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY----------END ",
        "eyJ",
        "eyJaaaaaaaa.",
        "sk-",
        "bearer ",
        "DE89 ",
        "1.1.1.1.",
        "[email",
        "my ",
        "passport ",
        "１",
        "\u{a0}",
        "xxx-xx-",
        "ghp_a",
        "\\n",
    ];
    for part in parts {
        let text = part.repeat((1 << 17) / part.len());
        assert!(risk(&redact(&text)) <= PiiRisk::Possible, "{part:?}");
    }
}

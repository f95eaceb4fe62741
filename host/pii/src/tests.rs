//! Tests of the detector: a table of texts, the promises of the public functions and hostile input.
//!
//! Every number, address and token here is made up, reserved for documentation or a published test
//! value. Token prefixes are split with `concat!`, so that scanners for leaked credentials do not
//! report this file.

use std::borrow::Cow;

use regex::Regex;

use self::samples::{NEGATIVE, POSITIVE};
use super::PiiKind::{Hint, Redacted};
use super::{Finding, PiiKind, PiiRisk, redact, redact_member, redact_secrets, risk, rules, scan};

mod passwords;
mod samples;

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
        assert!(
            finding.range.start >= end && finding.range.start < finding.range.end,
            "{text:?}: {found:?}"
        );
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
    for (pattern, _) in rules::specs() {
        let regex = Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        assert!(!regex.is_match(""), "{pattern}");
    }
    assert_eq!(rules::rules_for("a password").count(), rules::specs().count());
    assert!(rules::rules_for("a cat").count() < rules::specs().count());
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
    let failures: Vec<_> =
        NEGATIVE.iter().map(|text| (text, scan(text))).filter(|(_, got)| !got.is_empty()).collect();
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
        let got: Vec<_> = scan(text)
            .into_iter()
            .filter(|f| f.risk == PiiRisk::High)
            .map(|f| &text[f.range])
            .collect();
        assert_eq!(got, [want], "{text:?}");
    }
}

#[test]
fn redaction_names_the_kind_and_keeps_the_rest() {
    let cases = [
        ("Mail jane@example.com or call 415-555-0132.", "Mail [EMAIL] or call [PHONE]."),
        ("4111 1111 1111 1111 / DE89370400440532013000", "[CARD] / [IBAN]"),
        ("123-45-6789 from 8.8.8.8", "[SSN] from [IP_ADDRESS]"),
        (
            "password: \"s3cretvalue\", passport X1234567",
            "password: \"[SECRET]\", passport [PASSPORT]",
        ),
        ("jane＠example．com – и всё", "[EMAIL] – и всё"),
        ("a@example.com@example.org", "[EMAIL]"),
        // Two findings that overlap leave no fragment of the one that gave way.
        ("+45 32 12 34 56 4111 1111 1111 1111", "[PHONE]"),
        ("[EMAIL] stays, and so does 10.0.0.1", "[EMAIL] stays, and so does 10.0.0.1"),
    ];
    for (text, want) in cases {
        assert_eq!(redact(text), want, "{text:?}");
    }
}

/// Behind the token of an address comes `@`, as in a mail address.
#[test]
fn a_credential_is_one_whatever_else_it_looks_like() {
    let token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let text = format!("git push https://x:{token}@github.com/a/b, ask eve@example.com");
    let redacted = redact_secrets(&text);
    assert!(redacted.contains("[SECRET]") && !redacted.contains(token), "{redacted}");
    assert!(redacted.ends_with("eve@example.com"), "{redacted}");
    for address in [
        "redis://:hunter2secret9@cache:6379/0",
        "https://bob:hunter2:secret9@host/",
        "https://bob:hunt@er2secret9@host/",
        "ghp_16C7e42F\u{fff0}292c6912E7710c838347Ae178B4a",
        "ghp_16C7e42F\u{13430}292c6912E7710c838347Ae178B4a",
    ] {
        let redacted = redact_secrets(address);
        assert!(redacted.contains("[SECRET]"), "{redacted}");
        assert!(!redacted.contains("ecret9") && !redacted.contains("292c"), "{redacted}");
    }
    // The port of an address is no password of the mail address behind it.
    let json = r#"{"url":"http://localhost:3000","mail":"eve@example.com"}"#;
    assert_eq!(redact_secrets(json), json);
}

#[test]
fn a_place_tells_a_credential() {
    for (text, left) in [
        (
            "machine a.org login bob password hunter two",
            "machine a.org login bob password [SECRET] two",
        ),
        ("curl -sS -u bob:hunter2 https://a.org", "curl -sS -u bob:[SECRET] https://a.org"),
        ("mysql --password hunter2 -h db", "mysql --password [SECRET] -h db"),
        (r#"["--api-key", "hunter2x", "-v"]"#, r#"["--api-key", "[SECRET]", "-v"]"#),
        ("Cookie: theme=dark; sid=s3cr3ts3cr3ts3cr3t\nHost: a", "Cookie: [SECRET]\nHost: a"),
        ("<password>hunter2</password>", "<password>[SECRET]</password>"),
        ("password: |\n  hunter2x9\nuser: bob", "password: |\n  [SECRET]\nuser: bob"),
        (r#"{"user":"bob","pass":"hunter2"}"#, r#"{"user":"bob","pass":"[SECRET]"}"#),
        ("export DB_PASS=hunter2x9", "export DB_PASS=[SECRET]"),
    ] {
        assert_eq!(redact_secrets(text), left, "{text}");
    }
    for (name, value, is_secret) in [
        ("pass", "hunter2x9", true),
        ("DB_PASS", "hunter2x9", true),
        ("smtpPass", "hunter2x9", true),
        ("bypass", "lane3b", false),
        ("highPass", "440Hz", false),
        ("compass", "n45w12", false),
    ] {
        let redacted = redact_member(name, value, redact_secrets);
        assert_eq!(redacted.as_deref(), is_secret.then_some("[SECRET]"), "{name}");
    }
    for text in [
        "curl -u $USER:$PASS https://a.org",
        "docker login --password-stdin",
        "add a --token flag, please",
        "pass --password FILE",
        "Cookie: theme=dark; lang=en",
        "the cookie: it keeps the session",
        "<password>{{ password }}</password>",
        "<token>the name of the token</token>",
        r#"{"pass": "yes", "fail": "no"}"#,
        "PASS=true",
        "HIGH_PASS=440Hz TEST_PASS=34of34",
        r#"{"pass": "2026-11-28"}"#,
        "machine learning login flow: password reset2 emails",
        "machine learning needs login and a password here",
    ] {
        assert_eq!(redact_secrets(text), text, "{text}");
    }
}

#[test]
fn a_text_that_does_not_settle_is_withheld() {
    // Each number can only be seen when the one before it is gone.
    assert_eq!(redact(&"+4930123456".repeat(3)), "[PHONE][PHONE][PHONE]");
    assert_eq!(redact(&"+4930123456".repeat(30)), "[redacted]");
}

#[test]
fn risk_levels_are_ordered_numbers() {
    for (level, want) in [PiiRisk::None, PiiRisk::Possible, PiiRisk::High].into_iter().enumerate() {
        assert_eq!(usize::from(want.level()), level);
    }
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
        "[EMAIL]",
        "[SECRET]",
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
    assert_eq!(redact(&fill("a@a.aa ")).len(), "[EMAIL] ".len() * ((1 << 20) / "a@a.aa ".len()));
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
        "call ",
        "phone is ",
        "born ",
        "[redacted ",
        "[[EMAIL",
        "0171 ",
        "756.",
        "** ",
    ];
    for part in parts {
        let text = part.repeat((1 << 17) / part.len());
        assert!(risk(&redact(&text)) <= PiiRisk::Possible, "{part:?}");
    }
}

#[test]
fn what_people_tell_an_assistant_is_redacted() {
    for (text, redacted) in [
        ("write to ann.lee@example.org.", "write to [EMAIL]."),
        ("call +49 (30) 1234-5678 today", "call [PHONE] today"),
        ("or 415-555-0132", "or [PHONE]"),
        ("my cell: 0171 2345678", "my cell: [PHONE]"),
        ("card 4111 1111 1111 1111 ok", "card [CARD] ok"),
        ("4111 1111 1111 1111 0, or 4111-1111-1111-1111 123", "[CARD] 0, or [CARD] 123"),
        ("+49 171 2345678 123456", "[PHONE] 123456"),
        ("DE89 3704 0044 0532 0130 00 to be paid", "[IBAN] to be paid"),
        ("pay DE89 3704 0044 0532 0130 00 now", "pay [IBAN] now"),
        ("ssn 123-45-6789", "ssn [SSN]"),
        ("from 93.184.216.34", "from [IP_ADDRESS]"),
        ("at 2606:2800:220:1:248:1893:25c8:1946", "at [IP_ADDRESS]"),
        ("key AKIAIOSFODNN7EXAMPLE", "key [SECRET]"),
        ("use mh_QxtvJjnFnn71UfBrov4Zrc7dbgKnIGOT8dtTs2Z3ugQ now", "use [SECRET] now"),
        ("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH ok", "[SECRET] ok"),
        ("authorization: Basic dXNlcjpwYXNzd29yZA== ok", "[SECRET] ok"),
        ("https://hooks.slack.com/services/T0000/B0000/abcdefghijkl ok", "[SECRET] ok"),
        // As copies of web pages and PDF files have it.
        ("ann\u{200b}@example\u{ad}.org too", "[EMAIL] too"),
        ("card 4111\u{2060}1111\u{200b}1111\u{ad}1111 ok", "card [CARD] ok"),
        ("password: hunter2x", "password: [SECRET]"),
        ("AKIAIOSFODNN7EXAMPLE :a#AAA1234", "[SECRET] :a#AAA1234"),
        ("the api key is x9f3k2l1m", "the api key is [SECRET]"),
        ("my pin code is 4711", "my pin code is [SECRET]"),
        ("call me on 0171 2345678", "call me on [PHONE]"),
        ("passport number X1234567", "passport number [PASSPORT]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAw1z\n-----END RSA PRIVATE \
             KEY-----\nok",
            "[SECRET]\nok",
        ),
        ("one\nann@example.org\ntwo", "one\n[EMAIL]\ntwo"),
    ] {
        assert_eq!(redact(text), redacted);
        assert_eq!(risk(text), PiiRisk::High, "{text}");
        assert!(risk(&redact(text)) < PiiRisk::High, "{text}");
    }
}

#[test]
fn what_only_looks_like_it_is_left_alone() {
    for text in [
        "git@github.com is a remote",
        "name@1.2.3 and icon@2x.png",
        "version 1.2.3.4",
        "127.0.0.1 and 10.0.0.7",
        "at 10:30:15 on 2026-03-01",
        "the token is expired",
        "12 ways to sort",
        "order 1234567890123",
        // The first twelve digits have a valid check digit; they are too few.
        "number 4222 2222 2222 1",
        // Hashes with the check number of an account: of their start, and of the whole.
        "memory-de89370400440532013000ffffffffff",
        "memory-be83750cc1548fc43be7855ee6c26d5e",
        "a ratio of 16:9",
        "I need 3 lists",
        "it is mobile.\",\"at\":\"2026-12-21T22:56:02Z",
        "text me on 2026-12-21",
        "step 3 of the Drive migration",
    ] {
        assert!(risk(text) < PiiRisk::High, "{text}: {:?}", scan(text));
    }
    for text in ["my email is [EMAIL]", "card ****1234", "her date of birth"] {
        assert_eq!(risk(text), PiiRisk::Possible, "{text}");
    }
}

//! Tests of secrets in requests and of their masks.

use super::*;
use proptest::prelude::*;

fn secrets(used_as: &str, pairs: &[(&str, &str)]) -> Secrets {
    let used_as: SecretUse = used_as.parse().unwrap();
    let list =
        pairs.iter().map(|(name, value)| (Secret::new(*name, *value).unwrap(), used_as.clone()));
    Secrets::new(list.collect()).unwrap()
}

fn one(used_as: &str, value: &str) -> Secrets {
    secrets(used_as, &[("K0", value)])
}

fn two_as(used_as: &str) -> Secrets {
    secrets(used_as, &[("KEY", "k&\"y\\ é"), ("LOOP", "{{secret:KEY}}")])
}

fn two() -> Secrets {
    two_as("header:authorization:Bearer")
}

#[test]
fn names_and_values_have_limits() {
    let fails = |name: &str, value: &str, part: &str| {
        let error = Secret::new(name, value).unwrap_err().to_string();
        assert!(error.contains(part) && (value.is_empty() || !error.contains(value)), "{error}");
    };
    for name in ["", "a b", "é", "a}}", &"a".repeat(65)] {
        fails(name, "v-1", "64");
    }
    fails("K", "", "has 0 bytes; 8 to 8,192 are allowed");
    fails("K", &"v".repeat(8193), "has 8193 bytes");
    for value in ["v-1\r\nX: y", "v-1\n", "v-1\0", "v-1\u{7f}", "v-1\u{85}"] {
        fails("K", value, "control character");
    }
    assert!(Secret::new("a".repeat(64), "v".repeat(8192)).is_ok());
    for (value, part) in
        [("seven-7", "has 7 bytes"), (" spaced-out", "space"), ("spaced-out ", "space")]
    {
        fails("K", value, part);
    }
    let twin = || (Secret::new("K", "long-enough").unwrap(), SecretUse::bearer());
    assert_eq!(Secrets::new(vec![twin(), twin()]).unwrap_err(), SecretError::Twice("K".to_owned()));
}

#[test]
fn debug_shows_names_only() {
    assert_eq!(format!("{:?}", two()), "Secrets([Secret(KEY), Secret(LOOP)])");
}

#[test]
fn a_header_gets_the_value_as_it_is() {
    assert_eq!(
        two().in_header("Authorization", "Bearer {{secret:KEY}}").unwrap(),
        "Bearer k&\"y\\ é"
    );
    assert_eq!(
        two().in_header("authorization", "bearer {{secret:KEY}}").unwrap(),
        "bearer k&\"y\\ é"
    );
    for text in [
        "x{{secret:KEY}}",
        "{{secret:KEY}};",
        "Bearer  {{secret:KEY}}",
        "a b {{secret:KEY}}",
        "{{secret:KEY}}{{secret:KEY}}",
    ] {
        assert_eq!(
            two().in_header("authorization", text).unwrap_err(),
            SecretError::NotWhole("header"),
            "{text}"
        );
    }
    assert_eq!(
        two_as("header:x-key").in_header("x-key", "{{secret:LOOP}}").unwrap(),
        "{{secret:KEY}}"
    );
    for text in ["plain", "{{ secret:KEY }}", "%7B%7Bsecret:KEY}}", "{{SECRET:KEY}}"] {
        assert!(matches!(two().in_header("x", text).unwrap(), Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn a_query_gets_the_value_percent_encoded() {
    let secrets = two_as("query:k");
    let encoded = "/p?a=1&k=k%26%22y%5C%20%C3%A9&b";
    for placeholder in [
        "{{secret:KEY}}",
        "%7B%7Bsecret%3AKEY%7D%7D",
        "%7b{secret%3aKEY}%7d",
        "%7B%7Bsecret:%4BEY%7D%7D",
    ] {
        assert_eq!(secrets.in_query(&format!("/p?a=1&k={placeholder}&b")).unwrap(), encoded);
        assert_eq!(
            secrets.in_query(&format!("/{placeholder}?a=1")).unwrap_err(),
            SecretError::InPath
        );
        assert_eq!(secrets.in_query(&format!("/{placeholder}")).unwrap_err(), SecretError::InPath);
    }
    for text in ["/?a=x{{secret:KEY}}", "/?a={{secret:KEY}}x", "/?a=%7B%7Bsecret:KEY}}%20"] {
        assert_eq!(secrets.in_query(text).unwrap_err(), SecretError::NotWhole("query"), "{text}");
    }
    for name in ["a", "K", "k;k", "x=k", "xk", ""] {
        let error = secrets.in_query(&format!("/?{name}={{{{secret:KEY}}}}")).unwrap_err();
        assert!(matches!(error, SecretError::Misplaced { .. }), "{name}: {error}");
    }
    assert_eq!(
        secrets.in_query("/?%6b={{secret:LOOP}}").unwrap(),
        "/?%6b=%7B%7Bsecret%3AKEY%7D%7D"
    );
    let spaced = two_as("query:api key");
    assert!(
        spaced.in_query("/?api+key={{secret:LOOP}}").is_ok()
            && spaced.in_query("/?api%20key={{secret:LOOP}}").is_ok()
    );
    for text in ["/p?a=%7B%7B&%", "/p", "", "/p?", "/?%257B%257Bsecret:KEY}}"] {
        assert!(matches!(secrets.in_query(text).unwrap(), Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn a_json_body_gets_the_value_at_its_pointer() {
    // Only the first item of the array changes.
    let rest = concat!(
        r#", 1.00, {"{{secret:NO": "a {{secret:KEY}}"}, "{{secret:KEY}}"], "#,
        r#""a":1, "a":"{{secret:KEY}}" }"#
    );
    let body = format!(r#"{{ "{{{{secret:KEY}}}}" : ["{{{{secret:KEY}}}}"{rest}"#);
    let expected = format!(r#"{{ "{{{{secret:KEY}}}}" : ["k&\"y\\ é"{rest}"#);
    let written = two_as("body:/{{secret:KEY}}/0").in_json(body.as_bytes()).unwrap().into_owned();
    assert_eq!(std::str::from_utf8(&written).unwrap(), expected);
    for (pointer, body, is_filled) in [
        (
            "/a/b~1c/1",
            r#"{"x":[{},"{{secret:LOOP}}"],"a":{"b\u002fc":["","{{secret:LOOP}}"]}}"#,
            true,
        ),
        ("/a/b~1c/1", r#"{"a":{"b":{"c":["","{{secret:LOOP}}"]}}}"#, false),
        ("/a/1", r#"{"a":["{{secret:LOOP}}"]}"#, false),
        ("/", r#"{"":"{{secret:LOOP}}"}"#, true),
        ("/", &format!(r#"{{"{}":"{{{{secret:LOOP}}}}"}}"#, "k".repeat(1_000)), false),
        ("/0", &format!(r#"{}"{{{{secret:LOOP}}}}"{}"#, "[".repeat(100), "]".repeat(100)), false),
        ("/a", r#"{"b":[[{"a":1},2],3],"a":"{{secret:LOOP}}"}"#, true),
    ] {
        let sent =
            two_as(&format!("body:{pointer}")).in_json(body.as_bytes()).unwrap().into_owned();
        assert_eq!(String::from_utf8(sent).unwrap() != body, is_filled, "{pointer} in {body}");
    }
    let long = secrets("body:/k", &[("KEY", &"v".repeat(8_192))]);
    let often = format!("{{{}\"a\":1}}", r#""k":"{{secret:KEY}}","#.repeat(10));
    assert_eq!(long.in_json(often.as_bytes()).unwrap_err(), SecretError::TooMuch);
    for body in [
        &b"not json \xff {{secret"[..],
        br#"{"{{secret:KEY}}":1}"#,
        br#"["\u007b{secret:KEY}}"]"#,
        b"",
    ] {
        assert!(
            matches!(two_as("body:/0").in_json(body).unwrap(), Cow::Borrowed(same) if same == body)
        );
    }
}

#[test]
fn many_placeholders_behind_many_keys_take_no_long_time() {
    let (keys, many) = (60, 200_000);
    let pointer = format!("{}/b", "/a".repeat(keys - 1));
    let body = format!(
        "{}[{}1]{}",
        r#"{"a":"#.repeat(keys),
        r#""{{secret:KEY}}","#.repeat(many),
        "}".repeat(keys)
    );
    let began = std::time::Instant::now();
    assert!(matches!(
        two_as(&format!("body:{pointer}")).in_json(body.as_bytes()),
        Ok(Cow::Borrowed(_))
    ));
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    for (part, index) in [("+0", 0), ("00", 0), ("01", 1), ("+1", 1)] {
        let body = format!("[{}\"{{{{secret:KEY}}}}\"]", "1,".repeat(index));
        let same = two_as(&format!("body:/{part}")).in_json(body.as_bytes()).unwrap().into_owned();
        assert_eq!(same, body.as_bytes(), "{part} is no index");
    }
}

#[test]
fn a_placeholder_that_cannot_be_filled_is_refused() {
    let not_granted = SecretError::NotGranted("OTHER".to_owned());
    assert_eq!(
        two().in_header("authorization", "Bearer {{secret:OTHER}}").unwrap_err(),
        not_granted
    );
    assert_eq!(two().in_query("/?a=%7B%7Bsecret%3AOTHER%7D%7D").unwrap_err(), not_granted);
    assert!(not_granted.to_string().contains("`OTHER`"));
    let long = format!("{{{{secret:{}}}}}", "a".repeat(65));
    for text in [
        "{{secret:",
        "{{secret:}}",
        "{{secret:KEY",
        "{{secret:KEY}",
        "{{secret:K Y}}",
        "{{secret:é}}",
        &long,
    ] {
        assert_eq!(
            two().in_header("authorization", text).unwrap_err(),
            SecretError::Unfinished("header"),
            "{text}"
        );
        assert_eq!(
            two().in_query(&format!("/?{text}")).unwrap_err(),
            SecretError::Unfinished("query"),
            "{text}"
        );
        let body = format!("[\"{text}\",\"{{{{secret:KEY}}}}\"]");
        let sent =
            String::from_utf8(two_as("body:/1").in_json(body.as_bytes()).unwrap().into_owned())
                .unwrap();
        assert!(
            sent.starts_with(&format!("[\"{text}\",")) && !sent.contains("{{secret:KEY}}\"]"),
            "{sent}"
        );
    }
    let message = SecretError::Unfinished("header").to_string();
    assert!(message.contains("`{{secret:NAME}}`"), "{message}");
    for body in [
        &b"{{secret:KEY}}"[..],
        b"[\"{{secret:KEY}}\"",
        b"[\"{{secret:KEY}}\xff\"]",
        b"a={{secret:KEY}}",
    ] {
        assert!(
            matches!(two_as("body:/0").in_json(body).unwrap(), Cow::Borrowed(same) if same == body),
            "no JSON, so nothing is put in"
        );
    }
}

#[test]
fn scrubbed_text_is_the_scrubbed_bytes() {
    let text = "é k&\"y\\ é / k%26%22y%5C+%c3%A9 é";
    assert_eq!(two().scrub_text(text), "é [secret KEY] / [secret KEY] é");
    assert_eq!(two().scrub(text.as_bytes()).as_ref(), two().scrub_text(text).as_bytes());
    assert!(matches!(two().scrub_text("é"), Cow::Borrowed("é")));
}

const VALUE: &str = r#"[ab%+/\\"{}:é2][ab%+/\\"{}:é 2]{6,9}[ab%+/\\"{}:é2]"#;

fn any_secrets() -> impl Strategy<Value = (Vec<String>, Secrets)> {
    prop::collection::vec(VALUE, 1..4).prop_map(|values| {
        let named = values.iter().enumerate().map(|(index, value)| (format!("K{index}"), value));
        let list = named
            .map(|(name, value)| (Secret::new(name, value.as_str()).unwrap(), SecretUse::bearer()));
        let secrets = Secrets::new(list.collect()).unwrap();
        (values, secrets)
    })
}

/// What is left of a scrubbed text between the masks, which themselves may have the letters of a
/// value.
fn leftovers(scrubbed: &str) -> Vec<String> {
    let marked = (0..4)
        .fold(scrubbed.to_owned(), |text, index| text.replace(&format!("[secret K{index}]"), "\0"));
    marked.split('\0').map(str::to_owned).collect()
}

proptest! {
    #[test]
    fn no_value_is_left_in_plain(
        (values, secrets) in any_secrets(), noise in VALUE,
        picks in prop::collection::vec(0..5_usize, 0..6),
    ) {
        let text: String =
            picks.iter().map(|&pick| values.get(pick).unwrap_or(&noise).as_str()).collect();
        for part in leftovers(&secrets.scrub_text(&text)) {
            prop_assert!(values.iter().all(|value| !part.contains(value)), "{:?} is left", part);
        }
    }

    #[test]
    fn what_was_put_in_is_masked_again((values, secrets) in any_secrets()) {
        let as_used = |used_as: &str| one(used_as, &values[0]);
        let json = serde_json::to_vec(&serde_json::json!({ "a": ["{{secret:K0}}"] })).unwrap();
        let in_body = as_used("body:/a/0");
        let sent = in_body.in_json(&json).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&sent).unwrap();
        prop_assert_eq!(&read["a"][0], &values[0]);
        let query = as_used("query:a").in_query("/?a={{secret:K0}}").map(Cow::into_owned).unwrap();
        let header = secrets.in_header(
            "authorization", "Bearer {{secret:K0}}",
        ).map(Cow::into_owned).unwrap();
        for sent in [String::from_utf8(sent.into_owned()).unwrap(), query, header] {
            for part in leftovers(&secrets.scrub_text(&sent)) {
                prop_assert!(
                    values.iter().all(|value| !part.contains(value)), "{:?} is left", part,
                );
                let decoded = percent_decode_str(&part).decode_utf8_lossy();
                prop_assert!(!decoded.contains(&values[0]), "{:?} is left", part);
            }
        }
    }

    #[test]
    fn a_body_without_placeholders_stays_as_it_is(body: Vec<u8>, text in r#"[{}a"\\: ]{0,20}"#) {
        let json = serde_json::to_vec(&serde_json::json!({ &text: [&text, 1.5] })).unwrap();
        for body in [body, text.into_bytes(), json] {
            prop_assert!(
                matches!(two_as("body:/0").in_json(&body), Ok(Cow::Borrowed(same)) if same == body)
            );
        }
    }

    #[test]
    fn any_text_in_json_keeps_its_meaning(
        before: String, after: String, key in r#"[a~/"é\\]{0,8}"#,
    ) {
        let text = format!("{before}{{{{secret:KEY}}}}{after}");
        let body = serde_json::json!({ &key: [&text, { "x": [&after, "{{secret:KEY}}"] }] });
        let pointer = format!("/{}/1/x/1", key.replace('~', "~0").replace('/', "~1"));
        let secrets = two_as(&format!("body:{pointer}"));
        let sent =
            secrets.in_json(&serde_json::to_vec_pretty(&body).unwrap()).unwrap().into_owned();
        let read: serde_json::Value = serde_json::from_slice(&sent).unwrap();
        prop_assert_eq!(read, serde_json::json!({ &key: [text, { "x": [&after, "k&\"y\\ é"] }] }));
    }
}

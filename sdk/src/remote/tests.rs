//! The helpers for records at a service.

mod provider;

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value, json};

use super::{
    Filter, Kept, Tag, Writes, escaped, hex, items, now, of_unix, offset, owner, pages,
    partition_choices, partition_name, partition_of, plain, to_unix_millis, unescaped, unhex, utc,
    whole, without_recall,
};
use crate::http::{Error as HttpError, Phase};
use crate::testing;
use crate::types::{Continuation, Error, RecordWrite, Scope};

fn broken() -> HttpError {
    HttpError::MaybeSent { request: "POST /a".into(), phase: Phase::Response, reason: "cut".into() }
}

fn refused() -> HttpError {
    HttpError::Status {
        request: "POST /a".into(),
        status: 429,
        message: String::new(),
        retry_after: None,
    }
}

#[test]
fn a_write_happens_once() {
    testing::reset(json!({}));
    let (writes, there) = (Writes::<String>::new("w"), RefCell::new(Vec::<String>::new()));
    let look = || Ok(there.borrow().first().cloned());
    let write = || {
        there.borrow_mut().push("id".to_owned());
        Ok("id".to_owned())
    };
    assert_eq!(writes.once("a", false, look, write).unwrap(), "id");
    assert_eq!(writes.once("a", false, || panic!("known"), || panic!("done")).unwrap(), "id");
    assert_eq!(writes.find("a").unwrap().as_deref(), Some("id"));
    writes.forget("a").unwrap();
    assert_eq!(writes.once("a", true, look, || panic!("it is there")).unwrap(), "id");
}

#[test]
fn a_write_that_broke_is_looked_for() {
    testing::reset(json!({}));
    let (writes, is_there, written) = (Writes::<u8>::new("w"), Cell::new(false), Cell::new(0));
    let look = || Ok(is_there.get().then_some(7));
    let write = |arrives: bool, error: HttpError| {
        written.set(written.get() + 1);
        is_there.set(is_there.get() || arrives);
        Err(error)
    };
    // The answer was lost.
    assert_eq!(writes.once("lost answer", false, look, || write(true, broken())).unwrap(), 7);
    // The request was lost: the next call looks and writes.
    is_there.set(false);
    assert!(matches!(
        writes.once("lost request", false, look, || write(false, broken())),
        Err(Error::Unavailable(_))
    ));
    assert_eq!(writes.once("lost request", false, look, || write(true, broken())).unwrap(), 7);
    assert_eq!(written.get(), 3);
    // It arrives after the look: the next call finds it.
    is_there.set(false);
    writes.once("slow", false, look, || write(false, broken())).unwrap_err();
    is_there.set(true);
    assert_eq!(writes.once("slow", false, look, || panic!("it is there")).unwrap(), 7);
    // What was refused is not looked for.
    writes.once("refused", false, || panic!("refused"), || write(false, refused())).unwrap_err();
    assert_eq!(writes.once("refused", false, || panic!("refused"), || Ok(8)).unwrap(), 8);
}

#[test]
fn a_whole_list_goes_on_after_the_last_id() {
    let all = || vec!["d", "a", "c", "b"];
    let (first, next) = whole(all(), |id| id, true, None, 3);
    assert_eq!((first, next), (vec!["a", "b", "c"], Continuation::Next("c".to_owned())));
    assert_eq!(whole(all(), |id| id, true, Some("c"), 3), (vec!["d"], Continuation::End));
    assert_eq!(
        whole(all(), |id| id, false, Some("c"), 3),
        (vec!["d"], Continuation::CannotContinue)
    );
}

#[test]
fn pages_go_on_where_they_were_though_others_write() {
    let all = RefCell::new((0..25).map(|n| format!("{n:02}")).collect::<Vec<_>>());
    let fetch = |page: u32| {
        let all = all.borrow();
        let (from, to) = ((page as usize - 1) * 10, page as usize * 10);
        assert!(from < all.len(), "page {page} does not exist");
        Ok((all[from..to.min(all.len())].to_vec(), to < all.len()))
    };
    let page = |cursor: Option<&str>, limit| {
        pages(cursor, limit, fetch, |id: &String| id, |id| id != "03").unwrap()
    };
    let (first, next) = page(None, 9);
    assert_eq!((first.len(), &next), (9, &Continuation::Next("1 09".to_owned())));
    // Two more at the start push the cursor's record onto the next page, and deleting moves it
    // back.
    all.borrow_mut().splice(0..0, ["x".to_owned(), "y".to_owned()]);
    assert_eq!(page(Some("1 09"), 2).0, ["10", "11"]);
    all.borrow_mut().drain(0..8);
    assert_eq!(page(Some("2 09"), 2).0, ["10", "11"]);
    let (last, end) = page(Some("2 20"), 100);
    assert_eq!((last.len(), end), (4, Continuation::End));
    // Its record is gone: nothing is left out.
    assert_eq!(page(Some("2 zz"), 1).0, ["16"]);
    for wrong in ["", "1", "x 1", "0 1"] {
        let page = pages(Some(wrong), 1, fetch, |id: &String| id, |_| true);
        assert!(matches!(page, Err(Error::InvalidRequest(_))), "{wrong:?}");
    }
}

#[test]
fn times_of_any_offset_become_utc() {
    for (time, expected) in [
        ("2026-11-23T13:57:02.065615+00:00", "2026-11-23T13:57:02.065615Z"),
        ("2024-02-29T23:30:00-07:00", "2024-03-01T06:30:00Z"),
        ("2026-01-01T00:10:00+05:30", "2025-12-31T18:40:00Z"),
        ("2026-01-01 00:10:00", "2026-01-01T00:10:00Z"),
        ("2026-01-01T00:10:00Z", "2026-01-01T00:10:00Z"),
    ] {
        assert_eq!(utc(time).as_deref(), Some(expected), "{time}");
    }
    for time in [
        "",
        "2026-01-01",
        "2026-13-01T00:00:00Z",
        "yesterday at noon, UTC",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+1",
    ] {
        assert_eq!(utc(time), None, "{time}");
    }
}

#[test]
fn a_tag_separates_partitions_and_fits_filters() {
    let scope = Scope { agent_id: Some("a".into()), ..Scope::company("c") };
    let record = RecordWrite {
        metadata: Some(r#"{"topic":"gate","n":1.50}"#.into()),
        ..RecordWrite::default()
    };
    let tag = Tag::written(&record, &scope, None);
    assert!(tag.is_visible_in(&scope) && tag.is_visible_in(&Scope::company("c")));
    assert!(!tag.is_visible_in(&Scope { agent_id: Some("b".into()), ..Scope::company("c") }));
    assert!(!tag.is_visible_in(&Scope::company("d")));
    assert!(Tag::default().is_visible_in(&scope), "somebody else wrote it");
    assert!(Filter::new(Some(r#"{"n":1.5}"#)).unwrap().fits(&tag));
    assert!(!Filter::new(Some(r#"{"n":2}"#)).unwrap().fits(&tag));
    assert!(Filter::new(Some("[]")).is_err());
    assert_eq!(tag.texts(), [("topic".to_owned(), "gate".to_owned())]);
    let back: Tag = serde_json::from_value(json!(tag)).unwrap();
    assert_eq!(
        back.snippet("id", "text", crate::types::Score::None).metadata.as_deref(),
        record.metadata.as_deref()
    );
}

#[test]
fn recalled_text_is_not_learnt_again() {
    assert_eq!(without_recall("a <memhost-recall>x</memhost-recall> b"), "a  b");
    assert_eq!(without_recall("a <memhost-recall>x"), "a ");
}

#[test]
fn seconds_are_times() {
    assert_eq!(of_unix(0.0).as_deref(), Some("1970-01-01T00:00:00Z"));
    assert_eq!(of_unix(1_772_323_199.25).as_deref(), Some("2026-02-28T23:59:59.250Z"));
    assert_eq!(of_unix(253_402_300_799.0).as_deref(), Some("9999-12-31T23:59:59Z"));
    for none in [-1.0, 253_402_300_800.0, f64::NAN, f64::INFINITY] {
        assert_eq!(of_unix(none), None);
    }
}

#[test]
fn times_are_milliseconds() {
    assert_eq!(to_unix_millis("1970-01-01T00:00:00Z"), Some(0));
    assert_eq!(to_unix_millis("2026-02-28T23:59:59.25Z"), Some(1_772_323_199_250));
    assert_eq!(to_unix_millis("2026-03-01T01:59:59.250999+02:00"), Some(1_772_323_199_250));
    assert_eq!(to_unix_millis("1969-12-31T23:59:59Z"), Some(-1_000));
    assert_eq!(to_unix_millis("yesterday"), None);
}

#[test]
fn names_are_read_back_and_no_two_are_alike() {
    assert_eq!(plain("Op_1-ä"), "_4fp_5f1-_c3_a4");
    assert_ne!(plain("Op"), plain("op"));
    assert_eq!(unhex(&hex("ä=\n")).as_deref(), Some("ä=\n"));
    assert!(["7", "zz", "c3"].iter().all(|wrong| unhex(wrong).is_none()));
    let scope = Scope {
        agent_id: Some("Ada".to_owned()),
        namespace: Some("n".to_owned()),
        ..Scope::company("acme")
    };
    assert_eq!(partition_of(&partition_name(&scope)), Some(scope));
    assert!(
        ["memhost-", "memhost-5b5d", "ada", "memhost-zz"]
            .iter()
            .all(|name| partition_of(name).is_none())
    );
}

#[test]
fn names_in_a_services_signs_are_read_back() {
    assert_eq!(
        (escaped("op:1-_", '.', "-_"), escaped("a-b_c", '_', "-")),
        ("op.3a1-_".to_owned(), "a-b_5fc".to_owned())
    );
    for text in ["", "a-b_c", "ä/=\n", "_5f"] {
        assert_eq!(unescaped(&escaped(text, '_', "-"), '_').as_deref(), Some(text));
    }
    assert!(["_", "_5", "_zz", "_c3"].iter().all(|wrong| unescaped(wrong, '_').is_none()));
    assert_eq!(
        (owner(None, "acme"), owner(None, ""), owner(Some("me"), "acme")),
        ("memhost-acme".into(), "memhost".into(), "me".into())
    );
}

fn members(tag: &Tag) -> Map<String, Value> {
    tag.members("my_")
}

#[test]
fn a_tag_is_read_from_members_and_its_partition_can_be_filtered_by() {
    let scope = Scope { agent_id: Some("-".into()), ..Scope::company("c") };
    let metadata = Some(r#"{"topic":"gate","n":1}"#.to_owned());
    let tag = Tag { metadata, ..Tag::of(&scope) };
    let all = members(&tag);
    assert_eq!((&all["my_topic"], all.get("my_n"), all.len()), (&json!("gate"), None, 5));
    assert!(all.values().all(Value::is_string));
    assert_eq!(Tag::of_members(&all), Some(tag.clone()));
    assert_eq!(Tag::read(&json!(tag)), Some(tag), "also as JSON");
    let fits = |scope: &Scope, all: &Map<String, Value>| {
        partition_choices(scope)
            .iter()
            .all(|(name, values)| values.iter().any(|value| all[*name] == **value))
    };
    let other =
        Scope { agent_id: Some("b".into()), subject_id: Some("s".into()), ..Scope::company("c") };
    assert!(fits(&scope, &all) && !fits(&other, &all) && fits(&Scope::company("c"), &all));
    assert!(
        fits(&other, &members(&Tag::of(&Scope::company("c")))),
        "it is of all, and of nobody called `-`"
    );
    // What somebody else wrote has what is left.
    let foreign = Tag::foreign(&all);
    assert_eq!(
        (foreign.metadata.as_deref(), foreign.scope),
        (Some(r#"{"my_topic":"gate"}"#), None)
    );
    assert_eq!(Tag::foreign(&Map::new()), Tag::default());
}

#[test]
fn a_tag_is_compact_and_has_times() {
    let tag =
        Tag { created_at: Some("2026-01-01T00:00:00Z".into()), ..Tag::of(&Scope::company("c")) };
    assert_eq!(
        tag.compact(),
        json!({"scope": {"company_id": "c"}, "createdAt": "2026-01-01T00:00:00Z"})
    );
    let timed = tag.or_times(Some("2020-01-01T00:00:00Z"), Some("2020-01-01 00:00:00"));
    assert_eq!(timed.created_at.as_deref(), Some("2026-01-01T00:00:00Z"), "its own");
    assert_eq!(timed.expires_at.as_deref(), Some("2020-01-01T00:00:00Z"));
    assert!(timed.has_expired() && !Tag::default().has_expired());
    assert!(
        !Tag { expires_at: Some("9999-01-01T00:00:00Z".into()), ..Tag::default() }.has_expired()
    );
    let now = now();
    assert_eq!(utc(&now), Some(now));
}

#[test]
fn what_is_kept_of_a_record_has_its_text_where_it_would_change() {
    for (changes, text) in [(true, " own "), (false, "own")] {
        let kept: Kept =
            serde_json::from_value(json!(Kept::new("key", " own ", &Tag::default(), changes)))
                .unwrap();
        let record = kept.record("id".to_owned(), "own".to_owned());
        assert_eq!(
            (record.key.as_deref(), record.id.as_str(), record.text.as_str()),
            (Some("key"), "id", text)
        );
    }
}

#[test]
fn pages_are_fetched_as_far_as_they_are_looked_through() {
    let fetched = Cell::new(0);
    let fetch = |page: u32| {
        fetched.set(page);
        if page == 4 { Err("broken") } else { Ok((vec![page * 10, page * 10 + 1], page < 5)) }
    };
    let is_odd = |number: &u32| number % 2 == 1;
    assert_eq!((items(9, fetch, is_odd).next(), fetched.get()), (Some(Ok(11)), 1));
    assert_eq!(items(2, fetch, is_odd).collect::<Vec<_>>(), [Ok(11), Ok(21)]);
    assert_eq!(items(9, fetch, is_odd).collect::<Result<Vec<_>, _>>(), Err("broken"));
    assert_eq!(items(9, fetch, is_odd).count(), 4, "it ends with the error");
    assert_eq!(items(9, |_| Ok::<_, ()>((vec![1], false)), is_odd).count(), 1);
}

#[test]
fn a_cursor_of_a_tree_is_a_number() {
    assert_eq!((offset(None).unwrap(), offset(Some("20")).unwrap()), (0, 20));
    assert!(matches!(offset(Some("x")), Err(Error::InvalidRequest(_))));
}

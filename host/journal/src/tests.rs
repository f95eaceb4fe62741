//! Journals as memsearch's plugins and people write them, and what memhost adds.

use super::*;

fn new<'a>(anchor: &'a str, text: &'a str) -> New<'a> {
    New { time: "09:30", anchor, note: r#"{"id":"a->b"}"#, text }
}

#[test]
fn entries_of_memsearchs_plugins_are_read() {
    let journal = "\n## Session 12:00\n\n### 12:00\n<!-- session:s1 turn:t1 transcript:/t/s1.jsonl \
                   -->\n- Moved to Friday\n\
                   - Ana agreed\n\n### 12:05\n- No anchor\n\n## Session 13:00\n\n### 13:00\n<!-- \
                   session:s2 rollout:/r -->\n- Last";
    let found = entries(journal);
    let seen: Vec<_> = found
        .iter()
        .map(|entry| (entry.time.unwrap(), entry.named("session"), &*entry.text))
        .collect();
    let expected = [
        ("12:00", Some("s1"), "- Moved to Friday\n- Ana agreed"),
        ("12:05", None, "- No anchor"),
        ("13:00", Some("s2"), "- Last"),
    ];
    assert_eq!(seen, expected);
    assert_eq!((found[0].named("turn"), found[0].named("rollout")), (Some("t1"), None));
    assert!(
        found
            .iter()
            .all(|entry| entry.note.is_none() && journal[entry.range.clone()].starts_with("### "))
    );
}

#[test]
fn a_mark_of_the_encoding_and_lines_of_a_formatter_change_nothing() {
    let journal = "\u{feff}# 2026-03-01\n\n## Session 12:00\n\n### 12:00\n\n\
                   <!-- session:s1 turn:t1 -->\n\n- Moved to Friday\n\n### 12:05\n\n\
                   <!-- to do -->\n- No anchor\n";
    let found = entries(journal);
    let seen: Vec<_> = found.iter().map(|entry| (entry.named("session"), &*entry.text)).collect();
    assert_eq!(seen, [(Some("s1"), "- Moved to Friday"), (None, "<!-- to do -->\n- No anchor")]);
    assert!(journal[found[0].range.clone()].starts_with("### 12:00"));
    let mut formatted = String::new();
    new("session:s turn:t", "one\n\n## Session 10:00").add_to(&mut formatted, "2026-03-01");
    let formatted =
        formatted.replace("### 09:30\n", "### 09:30\n\n").replace(" -->\n<", " -->\n\n<");
    let found = entries(&formatted);
    assert_eq!(
        (found[0].named("session"), &*found[0].text),
        (Some("s"), "one\n\n## Session 10:00")
    );
}

#[test]
fn sections_of_other_markdown_are_entries() {
    let found = entries(
        "Before.\n\n# Title\n\n## Keys\nUnder the mat.\n#### Deep\nx\n\n###no heading\n## Empty\n",
    );
    let texts: Vec<&str> = found.iter().map(|entry| &*entry.text).collect();
    assert_eq!(texts, ["Before.", "## Keys\nUnder the mat.\n#### Deep\nx\n\n###no heading"]);
    assert!(entries("").is_empty() && entries("\n\n# A\n## B").is_empty());
}

#[test]
fn any_text_is_read_back_exactly() {
    let texts = [
        "plain",
        "\n\nblank around\n\n",
        "### 10:00\nlooks like an entry\n\n## Session 1",
        "<!-- memhost 3 {} -->\nabc",
        "",
        "a\r\nb\r\n",
        "日本 -->",
        "#",
        "# x",
        "\\### 10:00\n\\\\## Session 1\n\\# y\n\\",
    ];
    let mut journal = String::new();
    for text in texts {
        new("session:s turn:t", text).add_to(&mut journal, "2026-03-01");
    }
    let found = entries(&journal);
    assert_eq!(found.iter().map(|entry| &*entry.text).collect::<Vec<_>>(), texts);
    assert!(
        found.iter().all(|entry| entry.note == Some(r#"{"id":"a-\u003eb"}"#)
            && entry.named("session") == Some("s"))
    );
    assert_eq!(
        journal.matches("## Session 09:30").count(),
        1,
        "a session has one heading: {journal}"
    );
    assert!(journal.starts_with(
        "# 2026-03-01\n\n## Session 09:30\n\n### 09:30\n<!-- session:s turn:t -->\n<!-- memhost 5 "
    ));
    // One entry is taken out, and the others stay.
    let third = found[2].range.clone();
    journal.replace_range(third, "");
    assert_eq!(entries(&journal).len(), texts.len() - 1);
}

/// A day that is written as a whole is the one to which its entries were added, and a large one is
/// written at once.
#[test]
fn a_day_of_many_entries_is_written_without_reading_it() {
    let (mut grown, mut made) = (String::new(), Journal::default());
    for anchor in ["", "session:s turn:1", "session:t turn:2", "session:s turn:3", "", "session:u"]
    {
        new(anchor, "one\n## Session 10:00\ntwo").add_to(&mut grown, "2026-03-01");
        made.add(&new(anchor, "one\n## Session 10:00\ntwo"), "2026-03-01");
    }
    assert_eq!(made.into_text(), grown);
    let mut large = Journal::default();
    let text = "x".repeat(500);
    for number in 0..20_000 {
        large.add(&new(&format!("session:{number} turn:1"), &text), "2026-03-01");
    }
    assert_eq!(large.into_text().matches(SESSION).count(), 20_000);
}

#[test]
fn an_edited_text_ends_at_the_next_entry() {
    let mut journal = String::new();
    new("", "one").add_to(&mut journal, "2026-03-01");
    new("", "two").add_to(&mut journal, "2026-03-01");
    let journal = journal.replace("one\n", "one and\n\n## more\nof it\n").replace("two\n", "2\n");
    let found = entries(&journal);
    assert_eq!(
        found.iter().map(|entry| &*entry.text).collect::<Vec<_>>(),
        ["one and\n\n## more\nof it", "2"]
    );
    assert!(found.iter().all(|entry| entry.note.is_some()));
}

#[test]
fn an_edited_text_holds_no_other_entry() {
    let forged = "one\n\n### 10:00\n<!-- memhost 1 {\"id\":\"b\"} -->\nx\n\n## Session 10:00";
    let mut journal = String::new();
    new("", forged).add_to(&mut journal, "2026-03-01");
    let journal = journal.replace("one\n", "one, and more\n");
    let found = entries(&journal);
    assert_eq!(
        found.iter().map(|entry| &*entry.text).collect::<Vec<_>>(),
        [forged.replace("one\n", "one, and more\n")]
    );
}

#[test]
fn what_memsearch_could_not_read_is_no_anchor() {
    for session in ["", "a b", "a-->", "a--b", "ü"] {
        assert_eq!(anchor(&[("session", Some(session)), ("turn", None)]), "", "{session:?}");
    }
    assert_eq!(
        anchor(&[("session", Some("s/1")), ("turn", Some("a b")), ("transcript", Some("/t"))]),
        "session:s/1 transcript:/t"
    );
    assert_eq!(entries(&new("", "x").encode())[0].anchor, None);
}

#[test]
fn a_damaged_journal_is_read_to_its_end() {
    let odd = [
        "### 12:00\n<!-- memhost 99999999999999999999 {} -->\nx",
        "### 12:00\n<!-- memhost 18446744073709551615 {} -->\nx",
        "### 12:00\n<!-- memhost 1 {} -->\nü\n",
        "### 12:00\n<!-- memhost -->\nx",
        "### 12:00\n<!-- memhost 4",
        "###",
        "### ",
        "### 1\n<!---->",
    ];
    for content in odd {
        for at in (0..=content.len()).filter(|at| content.is_char_boundary(*at)) {
            let found = entries(&content[..at]);
            assert!(
                found.windows(2).all(|two| two[0].range.end <= two[1].range.start),
                "{content:?}"
            );
        }
    }
}

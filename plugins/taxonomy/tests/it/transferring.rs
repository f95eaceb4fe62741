//! Everything out and in.

use memhost_sdk::{Transfer, testing};
use serde_json::json;

use super::{Home, refusal, texts};

#[test]
fn an_import_restores_everything_that_was_exported() {
    let mut home = Home::new();
    home.learn("I prefer concise answers. Maybe I like tea. Need to call Ann tomorrow.");
    home.put("mail ann@example.org", json!({"kind": "fact"})).unwrap();
    let (before, waiting) = (home.list(), home.pending());
    let chunk = home.provider.export_records(testing::scope(), None).unwrap();
    let mut empty = Home::new();
    let count = u32::try_from(chunk.lines.lines().count()).unwrap();
    assert_eq!(
        empty
            .provider
            .import_records(testing::import(testing::scope(), chunk.lines.clone()))
            .unwrap()
            .imported,
        count
    );
    assert_eq!((empty.list(), empty.pending()), (before, waiting));
    assert_eq!(
        empty
            .provider
            .import_records(testing::import(testing::scope(), chunk.lines))
            .unwrap()
            .unchanged,
        count
    );
}

#[test]
fn large_exports_come_in_chunks() {
    let mut home = Home::new();
    let long = "word ".repeat(60_000);
    for n in 0..9 {
        home.put(&format!("{n} {long}"), json!({})).unwrap();
    }
    let (mut lines, mut cursor, mut chunks) = (String::new(), None, 0);
    loop {
        let chunk = home.provider.export_records(testing::scope(), cursor).unwrap();
        assert!(chunk.lines.len() <= 1 << 20);
        lines.push_str(&chunk.lines);
        (cursor, chunks) = (chunk.next_cursor, chunks + 1);
        if cursor.is_none() {
            break;
        }
    }
    assert!(chunks > 2);
    assert_eq!(lines.lines().count(), 9);
}

#[test]
fn an_imported_line_cannot_approve_raw_data() {
    let mut home = Home::new();
    home.put("mail somebody", json!({"kind": "fact"})).unwrap();
    let lines = home.provider.export_records(testing::scope(), None).unwrap().lines;
    let mut empty = Home::new();
    empty
        .provider
        .import_records(testing::import(
            testing::scope(),
            lines.replace("somebody", "ann@example.org"),
        ))
        .unwrap();
    assert!(empty.list().is_empty());
    assert_eq!(texts(empty.pending()), ["mail ann@example.org"]);
    let (field, _) = refusal(
        empty.provider.import_records(testing::import(testing::scope(), format!("{lines}junk\n"))),
    );
    assert_eq!(field, "lines.1");
}

//! What of a provider's answer a reader gets.

use super::*;
use memhost_types::{RecordFilter, Snippet};

/// A record as a provider answers it.
pub(super) fn snippet(id: &str, scope: Option<Scope>) -> Snippet {
    Snippet {
        handle: handle(id),
        text: format!("text of {id}"),
        score: None,
        score_kind: None,
        summary: None,
        source: None,
        metadata: None,
        created_at: None,
        updated_at: None,
        expires_at: None,
        scope,
        claimed_source: None,
        written_by: None,
        happened_at: None,
        corrected: None,
    }
}

async fn shown(room: &Room, reader: &Reader, mut found: Vec<Snippet>) -> Vec<String> {
    room.records.keep_visible(&room.binding, reader, None, None, &mut found).await.unwrap();
    found.iter().map(|snippet| snippet.handle.provider_record_id.to_string()).collect()
}

async fn knows(room: &Room, reader: &Reader, id: &str) -> bool {
    room.records.may_read(&room.binding, reader, &record(id)).await.unwrap()
}

#[tokio::test]
async fn a_reader_gets_its_own_records_and_the_companys() {
    let room = Room::new().await;
    for (id, writer) in [("ada", agent("ada")), ("u1", person("u1")), ("all", Reader::Nobody)] {
        room.write(&writer, &[id]).await;
    }
    let found = || ["ada", "u1", "all"].map(|id| snippet(id, None)).to_vec();
    assert_eq!(shown(&room, &Reader::All, found()).await, ["ada", "u1", "all"]);
    assert_eq!(shown(&room, &agent("ada"), found()).await, ["ada", "all"]);
    assert_eq!(shown(&room, &person("u1"), found()).await, ["u1", "all"]);
    assert_eq!(shown(&room, &agent("u1"), found()).await, ["all"]);
    assert_eq!(shown(&room, &Reader::Nobody, found()).await, ["all"]);
}

#[tokio::test]
async fn a_record_is_known_by_name_to_whoever_may_read_it() {
    let room = Room::new().await;
    assert!(knows(&room, &Reader::Nobody, "anything").await, "nothing is private");
    room.write(&agent("ada"), &["r"]).await;
    assert!(knows(&room, &agent("ada"), "r").await && knows(&room, &Reader::All, "r").await);
    assert!(!knows(&room, &person("ada"), "r").await && !knows(&room, &agent("eve"), "r").await);
    assert!(knows(&room, &agent("eve"), "another").await, "no private write can have made it");
}

#[tokio::test]
async fn a_record_without_a_row_is_hidden_while_a_private_write_runs() {
    let room = Room::new().await;
    let write = room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    for reader in [Reader::Nobody, agent("carol"), person("ada")] {
        assert!(shown(&room, &reader, vec![snippet("r", None)]).await.is_empty(), "{reader:?}");
        assert!(!knows(&room, &reader, "r").await);
    }
    assert_eq!(shown(&room, &agent("ada"), vec![snippet("r", None)]).await, ["r"]);
    assert_eq!(shown(&room, &Reader::All, vec![snippet("r", None)]).await, ["r"]);
    room.end(write, &[]).await;
    assert_eq!(shown(&room, &Reader::Nobody, vec![snippet("r", None)]).await, ["r"]);
}

#[tokio::test]
async fn a_record_that_is_older_than_a_private_write_is_shown() {
    let room = Room::new().await;
    room.sequence.set(100_000);
    room.begin(&agent("ada"), Some(Visibility::Agent)).await;
    let made = |second| Snippet { created_at: Some(at(second)), ..snippet("r", None) };
    assert_eq!(shown(&room, &Reader::Nobody, vec![made(10)]).await, ["r"]);
    assert!(shown(&room, &Reader::Nobody, vec![made(100_001)]).await.is_empty());
    assert!(shown(&room, &Reader::Nobody, vec![made(99_999)]).await.is_empty(), "clocks differ");
    let changed = Snippet { updated_at: Some(at(100_001)), ..made(10) };
    assert!(shown(&room, &Reader::Nobody, vec![changed]).await.is_empty());
}

#[tokio::test]
async fn times_that_a_request_gives_its_records_extend_the_search_backwards() {
    let room = Room::new().await;
    let operation = operation(100_000, OperationKind::RecordUpsert, scope_of(&agent("ada")));
    let asked = Some(Visibility::Agent);
    let ownership = Ownership::of(&room.binding, &operation.scope, asked).unwrap();
    let ownership = ownership.made_at([at(50_000), at(70_000)].into_iter());
    let mut marks = OperationMarks::default();
    marks.plan(&operation, &room.binding, &ownership);
    marks.begin(&room.records).unwrap();
    let made = |second| Snippet { created_at: Some(at(second)), ..snippet("r", None) };
    assert!(shown(&room, &Reader::Nobody, vec![made(50_000)]).await.is_empty());
    assert_eq!(shown(&room, &Reader::Nobody, vec![made(10)]).await, ["r"]);
}

#[tokio::test]
async fn a_provider_that_answers_another_agents_partition_is_not_believed() {
    let room = Room::new().await;
    let foreign = || vec![snippet("r", Some(scope_of(&agent("ada"))))];
    assert!(shown(&room, &agent("carol"), foreign()).await.is_empty());
    assert!(shown(&room, &Reader::Nobody, foreign()).await.is_empty());
    assert_eq!(shown(&room, &agent("ada"), foreign()).await, ["r"]);
    assert_eq!(shown(&room, &Reader::All, foreign()).await, ["r"]);
    // The host's own row decides where there is one.
    room.write(&Reader::Nobody, &["r"]).await;
    assert_eq!(shown(&room, &agent("carol"), foreign()).await, ["r"]);
}

#[tokio::test]
async fn a_filter_goes_by_the_row_and_by_the_text() {
    let room = Room::new().await;
    let from = source(|source| source.comment_id = Some("c1".to_owned()));
    let mut write = room.begin(&Reader::Nobody, None).await;
    write.operation.source = Some(from.clone());
    room.end(write, &["r1"]).await;
    let filtered = async |filter: RecordFilter| {
        let mut found = vec![snippet("r1", None), snippet("r2", None)];
        room.records
            .keep_visible(&room.binding, &Reader::All, Some(&filter), None, &mut found)
            .await
            .unwrap();
        found
    };
    let by_source = RecordFilter { comment_id: Some("c1".to_owned()), ..RecordFilter::default() };
    let found = filtered(by_source).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].source, Some(from), "the row says where it came from");
    let by_text = RecordFilter { text: Some("OF R2".to_owned()), ..RecordFilter::default() };
    assert_eq!(filtered(by_text).await[0].handle, handle("r2"));
    assert_eq!(filtered(RecordFilter::default()).await.len(), 2);
}

#[tokio::test]
async fn a_text_is_found_in_every_spelling() {
    let room = Room::new().await;
    let found = async |text: &str, wanted: &str| {
        let mut found = vec![Snippet { text: text.to_owned(), ..snippet("r1", None) }];
        let filter = RecordFilter { text: Some(wanted.to_owned()), ..RecordFilter::default() };
        let (binding, reader) = (&room.binding, &Reader::All);
        room.records.keep_visible(binding, reader, Some(&filter), None, &mut found).await.unwrap();
        found.len() == 1
    };
    for (text, wanted) in [
        ("Office: İstanbul", "istanbul"),
        ("Die Straße ist gesperrt", "STRASSE"),
        ("Η ανάπτυξη παγώνει", "αναπτυξη"),
        ("cafe\u{301}", "Café"),
        ("ＧＯ", "go"),
    ] {
        assert!(found(text, wanted).await, "{text} {wanted}");
    }
    assert!(!found("plain", "\u{301}").await && found("e\u{301}", "\u{301}").await);
}

#[tokio::test]
async fn what_has_expired_is_shown_to_nobody_whether_the_provider_says_so_or_the_row() {
    let room = Room::new().await;
    let row = RecordRow { expires_at: Some(at(10)), ..row("by-row", &Reader::Nobody) };
    room.put(room.records.write(&row, None).unwrap()).await;
    let shown = async |seconds: Option<i64>| {
        let by_provider = Snippet { expires_at: Some(at(10)), ..snippet("by-provider", None) };
        let mut found = vec![snippet("by-row", None), by_provider, snippet("never", None)];
        let now = seconds.map(at);
        let (binding, reader) = (&room.binding, &Reader::Nobody);
        room.records.keep_visible(binding, reader, None, now, &mut found).await.unwrap();
        let may = room.records.may_show(binding, reader, &record("by-row"), at(10)).await.unwrap();
        assert!(!may && room.records.may_read(binding, reader, &record("by-row")).await.unwrap());
        found.len()
    };
    assert_eq!((shown(Some(9)).await, shown(Some(10)).await, shown(None).await), (3, 1, 3));
}

#[tokio::test]
async fn the_row_says_where_a_record_came_from_and_the_provider_only_claims() {
    let room = Room::new().await;
    let known = SourceRef {
        asserted_by: Some("agent:ada".to_owned()),
        ..source(|source| source.comment_id = Some("c1".to_owned()))
    };
    let same = SourceRef { asserted_by: None, ..known.clone() };
    let other = source(|source| source.comment_id = Some("c2".to_owned()));
    let shown = async |id: &str, said: Option<SourceRef>| {
        let mut found = vec![Snippet { source: said, ..snippet(id, None) }];
        let (binding, now) = (&room.binding, Some(at(1)));
        room.records.keep_visible(binding, &Reader::All, None, now, &mut found).await.unwrap();
        let shown = found.remove(0);
        (shown.source, shown.claimed_source.map(|claimed| *claimed), shown.corrected)
    };
    // Before the binding has a row, and after that.
    assert_eq!(shown("r1", Some(other.clone())).await, (None, Some(other.clone()), None));
    let row = RecordRow { source: Some(known.clone()), ..row("r1", &Reader::Nobody) };
    room.put(room.records.write(&row, None).unwrap()).await;
    let from_row = (Some(known.clone()), None, None);
    assert_eq!(shown("r1", None).await, from_row);
    assert_eq!(shown("r1", Some(same)).await, from_row);
    let claimed = (Some(known.clone()), Some(other.clone()), None);
    assert_eq!(shown("r1", Some(other.clone())).await, claimed);
    assert_eq!(shown("r2", Some(other.clone())).await, (None, Some(other), None));

    let by = Principal::Operator;
    let corrected = RecordRow { corrected_by: Some(by.clone()), ..row.clone() };
    room.put(room.records.write(&corrected, Some(&row)).unwrap()).await;
    let found = shown("r1", None).await.2.unwrap();
    assert_eq!((found.by, found.operation_id), (by, row.operation_id));
    assert_eq!((found.from, found.at), (row.handle, row.operation_id.began_at()));
}

//! Finding: words, passages, surroundings.

use memhost_sdk::types::*;
use memhost_sdk::{Explain, Provider, testing};
use serde_json::json;

use super::Home;

#[test]
fn other_forms_accents_and_scripts_are_found() {
    let mut home = Home::new();
    home.keep(&[
        "She was running late",
        "Café Zürich",
        "東京で会議",
        "Ticket RUN-42 is done",
        "Они читают книгу",
    ]);
    assert_eq!(home.ask("ran"), ["She was running late", "Ticket RUN-42 is done"]);
    assert_eq!(home.ask("cafe zurich"), ["Café Zürich"]);
    assert_eq!(home.ask("cafe\u{301}"), ["Café Zürich"]);
    assert_eq!(home.ask("会議"), ["東京で会議"]);
    assert_eq!(home.ask("42"), ["Ticket RUN-42 is done"]);
    assert_eq!(home.ask("КНИГУ"), ["Они читают книгу"]);
}

#[test]
fn every_spelling_of_a_word_and_words_without_spaces_are_found() {
    for language in ["english", "german", "none"] {
        let mut home = Home::with(&json!({"language": language}));
        for (text, questions) in [
            ("Office: İstanbul", ["istanbul", "ISTANBUL"]),
            ("Die Straße ist gesperrt", ["strasse", "STRAẞE"]),
            ("Η ανάπτυξη παγώνει", ["αναπτυξη", "ΑΝΆΠΤΥΞΗ"]),
            ("Đa\u{323}\u{306}ng goes", ["đặng", "dang"]),
            ("gal\u{327}a un n\u{327}em", ["gaļa", "ņem"]),
            ("ＤＥＰＬＯＹ ﬁnished", ["deploy", "finished"]),
            ("ระบบจะหยุดการปล่อยเวอร์ชันใหม่ทุกวันศุกร์", ["วันศุกร์", "ปล่อย"]),
            ("ລະບົບຈະຢຸດທຸກວັນສຸກ", ["ວັນສຸກ", "ຢຸດ"]),
            ("사용자는 회의를 싫어한다", ["회의", "사용자"]),
        ] {
            home.keep(&[text]);
            for question in questions {
                let found = home.ask(question);
                assert!(found.first().is_some_and(|first| first == text), "{question}: {found:?}");
            }
        }
    }
}

#[test]
fn stop_words_count_only_in_questions_without_other_words() {
    let mut home = Home::new();
    home.keep(&["the who and the what", "a zebra"]);
    assert_eq!(home.ask("what is the zebra"), ["a zebra"]);
    assert_eq!(home.ask("who is it"), ["the who and the what"]);
    assert!(home.ask("were they").is_empty());
    assert!(home.ask("").is_empty() && home.ask("?! …").is_empty());
}

#[test]
fn without_a_question_a_preamble_has_the_latest() {
    let mut home = Home::new();
    home.keep(&["first", "second", "third"]);
    let preamble = QueryRequest { intent: Intent::AgentPreamble, top_k: 2, ..testing::query(" ") };
    let found = home.provider.query(preamble).unwrap().snippets;
    assert_eq!(
        found.iter().map(|snippet| snippet.text.as_str()).collect::<Vec<_>>(),
        ["third", "second"]
    );
}

#[test]
fn a_long_text_is_as_good_as_its_best_passage() {
    let mut home = Home::new();
    let filler =
        "The meeting went on about budgets and rooms and nothing else of note for a long while. ";
    let long = format!(
        "{}Mara keeps the spare key under the blue pot. {}",
        filler.repeat(60),
        filler.repeat(60)
    );
    home.put("long", &long);
    home.put("short", "A key point of the blue print was the budget.");
    let found = home
        .provider
        .query(testing::query("where is the spare key, under which pot"))
        .unwrap()
        .snippets;
    assert_eq!(found[0].id, "long");
    assert!(found[0].text.contains("the blue pot") && found[0].text.chars().count() <= 4_002);
    assert!(found[0].text.starts_with('…') && found[0].text.ends_with('…'));
    assert_eq!(home.get("long").unwrap().text, long);
    assert_eq!(home.provider.list_records(testing::list(None, 9)).unwrap().items[0].text, long);
}

#[test]
fn summaries_metadata_and_dates_are_searched() {
    let mut home = Home::new();
    let write = RecordWrite {
        id: Some("id".to_owned()),
        text: "Nothing telling".to_owned(),
        summary: Some("Roadmap review".to_owned()),
        metadata: Some(json!({"tags": ["infrastructure"], "count": 3}).to_string()),
        ..RecordWrite::default()
    };
    home.write("op", vec![write], testing::scope());
    let hook = HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: "2024-11-05T10:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    home.provider
        .capture(CaptureRequest {
            hook: Some(hook),
            ..testing::capture("c", "Dinner with friends")
        })
        .unwrap();
    assert_eq!(home.ask("roadmaps"), ["Nothing telling"]);
    assert_eq!(home.ask("infrastructure"), ["Nothing telling"]);
    assert_eq!(home.ask("dinner in november 2024"), ["Dinner with friends"]);
    assert_eq!(home.ask("november"), ["Dinner with friends"]);
}

#[test]
fn the_speaker_decides_between_equal_texts() {
    let mut home = Home::new();
    for speaker in ["Ana", "Ben", "Cid"] {
        let metadata = Some(json!({"speaker": speaker}).to_string());
        let request =
            CaptureRequest { metadata, ..testing::capture(speaker, "I moved to Lisbon in spring") };
        home.provider.capture(request).unwrap();
    }
    let found =
        home.provider.query(testing::query("When did Ben move to Lisbon?")).unwrap().snippets;
    assert_eq!(found[0].metadata.as_deref(), Some(r#"{"speaker":"Ben"}"#));
    assert_eq!(found.len(), 3);
}

#[test]
fn an_answer_is_found_by_its_question() {
    let mut home = Home::new();
    let say = |home: &mut Home, session: &str, text: &str| {
        let scope = Scope { session_key: Some(session.to_owned()), ..testing::scope() };
        home.provider.capture(CaptureRequest { scope, ..testing::capture(text, text) }).unwrap();
    };
    for (session, text) in [
        ("a", "Good morning"),
        ("a", "What did the vet say about the rabbit?"),
        ("a", "Only that it must rest for ten days."),
        ("b", "Good evening"),
        ("b", "Only that we must hurry."),
    ] {
        say(&mut home, session, text);
    }
    let found = home.ask("what did the vet say about the rabbit");
    assert_eq!(
        found[..2],
        ["What did the vet say about the rabbit?", "Only that it must rest for ten days."]
    );
    assert!(!found.contains(&"Only that we must hurry.".to_owned()));
}

#[test]
fn neighbours_count_less_for_long_records_and_in_documents() {
    let mut home = Home::new();
    let long = format!("An unrelated {}", "remark that goes on ".repeat(60));
    for (name, is_document, beside) in [
        ("short", false, "An unrelated remark"),
        ("long", false, &long),
        ("section", true, "An unrelated remark"),
    ] {
        let scope =
            Scope { session_key: (!is_document).then(|| name.to_owned()), ..testing::scope() };
        let source =
            SourceRef { document_key: is_document.then(|| name.to_owned()), ..testing::source() };
        for (kind, text) in [("hit", "What did the vet say about the rabbit?"), ("beside", beside)]
        {
            let (scope, source) = (scope.clone(), source.clone());
            let request = testing::capture(&format!("{name}-{kind}"), text);
            home.provider.capture(CaptureRequest { scope, source, ..request }).unwrap();
        }
    }
    let explained = home
        .provider
        .explain_query(testing::query("what did the vet say about the rabbit"))
        .unwrap();
    let part = |id: &str, part: &str| {
        let hit = explained
            .hits
            .iter()
            .find(|hit| hit.id == id)
            .unwrap_or_else(|| panic!("{id}: {explained:?}"));
        let found = hit.contributions.iter().find(|contribution| contribution.name == part);
        found.map_or(0.0, |contribution| contribution.value)
    };
    let [short, long, section] = ["short-beside", "long-beside", "section-beside"]
        .map(|id| (part(id, "neighbours"), part(id, "session")));
    assert!(short.0 > 3.0 * long.0 && short.1 > 3.0 * long.1 && long.0 > 0.0, "{short:?} {long:?}");
    assert!((short.0 - 4.0 * section.0).abs() < 1e-6 && section.1 > 0.0, "{short:?} {section:?}");
}

#[test]
fn a_filter_is_applied_before_the_best_are_chosen() {
    let mut home = Home::new();
    let write = |n: usize| RecordWrite {
        id: Some(format!("r{n}")),
        text: if n == 0 {
            "zebra among other things that are said here".into()
        } else {
            "zebra zebra".into()
        },
        metadata: Some(json!({"kind": if n == 0 { "rare" } else { "usual" }, "n": n}).to_string()),
        ..RecordWrite::default()
    };
    for batch in 0..3 {
        home.write(
            &format!("{batch}"),
            (batch * 1_000..(batch + 1) * 1_000).map(write).collect(),
            testing::scope(),
        );
    }
    let query = QueryRequest {
        metadata_filter: Some(r#"{"kind":"rare"}"#.into()),
        ..testing::query("zebra")
    };
    let found = home.provider.query(query).unwrap().snippets;
    assert_eq!(found.iter().map(|snippet| snippet.id.as_str()).collect::<Vec<_>>(), ["r0"]);
}

/// A second body of text beside conversations: notes, a document, comments and a long answer beside
/// short turns.
#[test]
fn the_defaults_work_for_notes_and_documents() {
    let mut home = Home::new();
    let answer = "To rotate the signing key, first create the new key in the vault and publish its \
                  public half. \
        Then deploy every verifier, so that both keys are accepted for a day. After that switch \
        the signer over and \
        watch the rejection rate. Once no token signed by the old key can still be valid, revoke \
        it and remove it \
        from the verifiers. If the rejection rate rises, switch the signer back at once; nothing \
        else has to be undone.";
    let texts = [
        "How do we rotate the signing key?",
        answer,
        "Thanks, key rotated!",
        "Retro: deployments on Fridays are banned after the March outage.",
        "Customer Hofmann prefers invoices in PDF and pays within ten days.",
        "The staging database is rebuilt from the nightly dump at 04:00 UTC.",
        "Comment: the flaky test in the importer is caused by a time zone.",
        "Lunch orders are collected by Priya until eleven.",
        "Design: events are kept for 90 days, audit records for seven years.",
        "We chose sled because it needs no server; see the benchmark of May.",
        "The key takeaway of the offsite: fewer meetings.",
        "Invoices over 5,000 euros need two signatures.",
    ];
    home.keep(&texts);
    for (question, expected) in [
        ("what should happen if rejections rise after the signing key was switched", 1),
        ("why are there no deploys on friday", 3),
        ("how does Hofmann want invoices", 4),
        ("when is the staging database rebuilt", 5),
        ("what causes the flaky importer test", 6),
        ("who collects lunch orders", 7),
        ("how long are audit records kept", 8),
        ("why was sled chosen", 9),
        ("what did we learn at the offsite", 10),
        ("how many signatures does a large invoice need", 11),
    ] {
        assert_eq!(
            home.ask(question).first().map(String::as_str),
            Some(texts[expected]),
            "{question}"
        );
    }
}

#[test]
fn scores_decrease_and_are_explained() {
    let mut home = Home::new();
    home.keep(&["zebra lion", "zebra", "lion and others in a longer text", "nothing"]);
    let found = home.provider.query(testing::query("zebra lion")).unwrap().snippets;
    let scores: Vec<f64> = found
        .iter()
        .map(|snippet| match snippet.score {
            Score::Rank(score) => score,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(
        scores.is_sorted_by(|a, b| a >= b)
            && scores.iter().all(|score| (0.0..=1.0).contains(score)),
        "{scores:?}"
    );
    let explained = home.provider.explain_query(testing::query("the zebra lion")).unwrap();
    assert_eq!(explained.query, r#"{"words":["zebra","lion"]}"#);
    assert_eq!(explained.hits.len(), found.len());
    for ((trace, snippet), score) in explained.hits.iter().zip(&found).zip(scores) {
        assert_eq!(trace.id, snippet.id);
        let sum: f64 = trace.contributions.iter().map(|part| part.value).sum();
        assert!((sum - score).abs() < 1e-5, "{sum} {score}");
    }
}

//! What a run begins with.

use memhost_sdk::types::{Intent, QueryRequest};
use memhost_sdk::{Profile, Provider, testing};
use serde_json::json;

use super::{Home, scope, user};

#[test]
fn all_facts_of_the_user_and_the_workspace_are_in_it() {
    let mut home = Home::new();
    for text in ["Senior software engineer", "Prefers concise responses"] {
        home.write(&user(), text);
    }
    home.write(&scope("", "", "p"), "Chose Zustand over Redux");
    home.write(&scope("", "", "other"), "Chose Redux");
    home.write(&scope("", "somebody", ""), "Likes tea");
    let (text, snippets) = home.preamble(&scope("ada", "u", "p"));
    assert_eq!(
        text.unwrap(),
        "## About This User\n\n- Senior software engineer\n- Prefers concise responses\n\n\
         ## About This Workspace\n\n- Chose Zustand over Redux\n\n"
    );
    assert_eq!(snippets.len(), 3);
    let (text, _) = home.preamble(&scope("ada", "", "other"));
    assert_eq!(text.unwrap(), "## About This Workspace\n\n- Chose Redux\n\n");
    assert_eq!(home.preamble(&scope("ada", "nobody", "")), (None, Vec::new()));
    assert_eq!(
        home.preamble(&scope("", "", "")),
        (None, Vec::new()),
        "nobody in particular has no facts"
    );
    let profile = home.provider.get_profile(scope("ada", "somebody", "other")).unwrap().summary;
    assert_eq!(
        profile.unwrap(),
        "## About This User\n\n- Likes tea\n\n## About This Workspace\n\n- Chose Redux\n\n"
    );
}

#[test]
fn it_has_at_most_500_tokens_and_counts_omitted_facts() {
    let mut home = Home::new();
    // About 30 tokens each: no more than seventeen fit.
    let long =
        |n: usize| format!("{n:02} {}", "decided after a long talk that it is so ".repeat(4));
    for n in 0..50 {
        let source = if n % 10 == 0 { "user" } else { "ai" };
        home.write_as(&user(), &long(n), json!({"source": source}));
    }
    let (text, snippets) = home.preamble(&user());
    let text = text.unwrap();
    let tokens = memhost_tokens::estimate(&text);
    assert!((440..=500).contains(&tokens), "{tokens}");
    assert!(
        text.ends_with(&format!("\n\nLeft out, oldest first: {}\n\n", 50 - snippets.len())),
        "{text}"
    );
    let mut kept: Vec<usize> = snippets.iter().map(|text| text[..2].parse().unwrap()).collect();
    assert_eq!(kept[..7], [40, 30, 20, 10, 0, 49, 48], "people's first, then what is newest");
    kept.sort_unstable();
    let shown: Vec<usize> =
        text.lines().filter_map(|line| line.strip_prefix("- ")?[..2].parse().ok()).collect();
    assert_eq!(shown, kept, "the list shows them in the order of time");
    let mut roomy = Home { provider: testing::reopen().unwrap(), operations: 0 };
    assert_eq!(roomy.preamble(&user()).0.unwrap(), text, "the counts are kept");
    assert_eq!(home.list(&user()).len(), 50, "what is left out is still there");
}

#[test]
fn the_caller_may_ask_for_fewer_snippets() {
    let mut home = Home::new();
    for n in 0..20 {
        home.write(&user(), &format!("fact {n}"));
    }
    let request = QueryRequest {
        scope: user(),
        top_k: 3,
        intent: Intent::AgentPreamble,
        ..testing::query("")
    };
    let bundle = home.provider.query(request).unwrap();
    assert_eq!(bundle.snippets.len(), 3);
    let lines =
        bundle.profile_summary.unwrap().lines().filter(|line| line.starts_with("- ")).count();
    assert_eq!(lines, 20, "the lists have all of them nevertheless");
}

#[test]
fn a_filter_applies_to_the_lists() {
    let mut home = Home::new();
    home.write_as(&user(), "by a person", json!({"source": "user"}));
    home.write_as(&user(), "by a model", json!({"source": "ai"}));
    let filter = Some(json!({"source": "user"}).to_string());
    let request = QueryRequest {
        scope: user(),
        metadata_filter: filter,
        intent: Intent::AgentPreamble,
        ..testing::query("")
    };
    let bundle = home.provider.query(request).unwrap();
    assert_eq!(bundle.profile_summary.unwrap(), "## About This User\n\n- by a person\n\n");
    assert_eq!(bundle.snippets.len(), 1);
}

#[test]
fn a_question_finds_facts_with_its_words() {
    let mut home = Home::new();
    for text in ["Uses Zustand", "Chose Zustand over Redux", "Prefers concise answers"] {
        home.write(&user(), text);
    }
    assert_eq!(
        home.ask(&user(), "zustand, or redux?"),
        ["Chose Zustand over Redux", "Uses Zustand"]
    );
    assert!(home.ask(&user(), "tea").is_empty());
    assert_eq!(home.ask(&user(), "").len(), 3);
}

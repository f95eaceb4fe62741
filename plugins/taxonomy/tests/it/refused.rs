//! What is not memory is refused with the place where it belongs.

use memhost_sdk::types::*;
use memhost_sdk::{Provider, testing};
use serde_json::json;

use super::{Home, refusal};

#[test]
fn each_excluded_kind_is_refused_with_its_place() {
    let mut home = Home::new();
    for (kind, place) in [
        ("context_cache", "LLM provider layer"),
        ("code_index", "`code_index` subsystem"),
        ("search_result", "not persisted"),
        ("embedding", "`memory_embeddings` table"),
        ("conversation_history", "`memory_sources` table"),
        ("temporary_variable", "in memory only"),
    ] {
        let (field, message) = refusal(home.put("something", json!({"kind": kind})));
        assert_eq!(field, "records.0.metadata.kind");
        assert!(message.contains(place), "{message}");
    }
    let (field, message) = refusal(home.put("Ann: hi\nBob: hello\nAnn: bye\nBob: bye", json!({})));
    assert!(field == "records.0.text" && message.contains("capture_residue"), "{message}");
    assert!(home.list().is_empty() && home.pending().is_empty());
}

#[test]
fn of_the_excluded_kinds_only_conversation_can_be_captured() {
    let mut home = Home::new();
    let log = "Ann: I prefer tea.\nBob: hello\nAnn: bye\nBob: bye";
    assert_eq!(home.learn(log).len(), 1);
    let as_record = home.provider.capture(testing::capture("op", log));
    assert_eq!(refusal(as_record).0, "payload.text");
    let mut request = home.residue("");
    request.payload.text =
        Some(json!({"results": [{"score": 1.0, "text": "I prefer tea"}]}).to_string());
    assert!(refusal(home.provider.capture(request)).1.contains("search results"));
    let mut request = home.residue("x");
    request.metadata = Some(json!({"type": "embedding"}).to_string());
    assert_eq!(refusal(home.provider.capture(request)).0, "payload.metadata.type");
    let mut request = home.residue("x");
    request.payload.mime_type = Some("text/x-ctags".to_owned());
    let (field, message) = refusal(home.provider.capture(request));
    assert!(field == "payload.mimeType" && message.contains("code index"), "{message}");
}

#[test]
fn code_in_a_text_is_skipped() {
    let mut home = Home::new();
    let text = "fn main() { let never = 1; }\n// Never do this;\n$ always cite\nclass \
                Goal:\n    my goal is to win\n";
    assert!(home.learn(text).is_empty());
    let response = home
        .provider
        .query(QueryRequest { intent: Intent::AgentPreamble, ..testing::query("") })
        .unwrap();
    assert!(response.snippets.is_empty());
}

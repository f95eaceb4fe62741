//! What is not memory, and where it belongs: the taxonomy's table of six, with the signs by which
//! each is recognised.

use serde_json::{Map, Value};

use crate::extract::speaker;

/// One row of the table.
#[derive(Debug, PartialEq)]
pub(crate) struct Excluded {
    pub(crate) name: &'static str,
    reason: &'static str,
    belongs: &'static str,
    /// The values of `metadata.kind`, `metadata.type` or a tag of the payload that name it.
    declared: &'static [&'static str],
    mime: &'static [&'static str],
}

const CACHE: Excluded = Excluded {
    name: "context caching",
    reason: "a performance optimization, not long-term storage",
    belongs: "in the LLM provider layer (prompt caching)",
    declared: &[
        "context_cache",
        "context_caching",
        "prompt_cache",
        "kv_cache",
        "cache",
        "cached_context",
        "cache_entry",
    ],
    mime: &[],
};
const CODE_INDEX: Excluded = Excluded {
    name: "a code index",
    reason: "repository structure, symbols and dependencies",
    belongs: "in the `context_engine/` or `code_index` subsystem",
    declared: &[
        "code_index",
        "symbol_index",
        "symbols",
        "symbol",
        "file_tree",
        "repository_structure",
        "repo_map",
        "dependency_graph",
        "dependencies",
        "call_graph",
        "ast",
        "ctags",
    ],
    mime: &["text/x-ctags", "application/x-ctags", "application/vnd.lsif", "application/x-scip"],
};
const SEARCH_RESULTS: Excluded = Excluded {
    name: "search results",
    reason: "ephemeral retrieval results",
    belongs: "nowhere: they are not persisted; use them immediately",
    declared: &[
        "search_result",
        "search_results",
        "retrieval_result",
        "retrieval_results",
        "query_result",
        "query_results",
        "hits",
        "search_hit",
        "retrieved_chunk",
        "retrieved_chunks",
    ],
    mime: &["application/opensearch+json", "application/x-suggestions+json"],
};
const EMBEDDINGS: Excluded = Excluded {
    name: "embeddings",
    reason: "vector representations of content",
    belongs: "in a separate `memory_embeddings` table",
    declared: &["embedding", "embeddings", "vector", "vectors"],
    mime: &["application/x-npy", "application/x-embedding", "application/vnd.safetensors"],
};
const CONVERSATION: Excluded = Excluded {
    name: "raw conversation history",
    reason: "unprocessed message logs",
    belongs: "in the `memory_sources` table, as input: capture it with the mode `capture_residue`, \
              and what is worth \
              keeping is extracted",
    declared: &[
        "conversation",
        "conversation_history",
        "raw_conversation",
        "raw_conversation_history",
        "chat_history",
        "chat_log",
        "chat",
        "transcript",
        "message_log",
        "messages",
        "message_history",
        "dialogue",
        "dialog",
    ],
    mime: &["application/x-chat+json", "application/vnd.chat+json", "text/x-transcript"],
};
const TEMPORARY: Excluded = Excluded {
    name: "temporary variables",
    reason: "session-only working memory",
    belongs: "in memory only: they are not persisted",
    declared: &[
        "temporary_variable",
        "temporary_variables",
        "temporary",
        "temp",
        "temp_variable",
        "variable",
        "variables",
        "session_variable",
        "session_variables",
        "working_memory",
        "scratchpad",
        "scratch",
        "session_state",
    ],
    mime: &[],
};
const TABLE: [&Excluded; 6] =
    [&CACHE, &CODE_INDEX, &SEARCH_RESULTS, &EMBEDDINGS, &CONVERSATION, &TEMPORARY];

/// This many numbers in a row are a vector.
const VECTOR: usize = 8;

/// The content of a write or capture.
#[derive(Debug, Default)]
pub(crate) struct Offered<'a> {
    pub(crate) metadata: Option<&'a Map<String, Value>>,
    pub(crate) mime: Option<&'a str>,
    pub(crate) text: &'a str,
    pub(crate) object: Option<&'a Value>,
    /// Whether it would become a record. Raw conversation may be captured as residue, from which
    /// records are extracted.
    pub(crate) as_record: bool,
}

impl Excluded {
    /// The message for the caller.
    pub(crate) fn message(&self) -> String {
        format!(
            "this is {}, which is not memory ({}); it belongs {}",
            self.name, self.reason, self.belongs
        )
    }
}

/// The row of the table that fits, if any, and the member that shows it.
pub(crate) fn excluded(offered: &Offered) -> Option<(&'static Excluded, &'static str)> {
    let found = declared(offered.metadata)
        .or_else(|| Some((by_mime(offered.mime?)?, "mimeType")))
        .or_else(|| Some((by_metadata(offered.metadata?)?, "metadata")))
        .or_else(|| Some((by_shape(offered.object?)?, "object")))
        .or_else(|| Some((by_text(offered.text)?, "text")))?;
    (offered.as_record || *found.0 != CONVERSATION).then_some(found)
}

fn declared(metadata: Option<&Map<String, Value>>) -> Option<(&'static Excluded, &'static str)> {
    let metadata = metadata?;
    for (member, at) in
        [("kind", "metadata.kind"), ("type", "metadata.type"), ("category", "metadata.category")]
    {
        let Some(name) = metadata.get(member).and_then(Value::as_str) else { continue };
        let name = name.trim().to_lowercase().replace(['-', ' '], "_");
        if let Some(row) = TABLE.into_iter().find(|row| row.declared.contains(&name.as_str())) {
            return Some((row, at));
        }
    }
    let says = |name: &str| metadata.get(name).is_some_and(|value| value.as_bool() == Some(true));
    (says("temporary") || says("ephemeral")).then_some((&TEMPORARY, "metadata"))
}

fn by_mime(mime: &str) -> Option<&'static Excluded> {
    let mime = mime.split(';').next()?.trim().to_lowercase();
    TABLE.into_iter().find(|row| row.mime.contains(&mime.as_str()))
}

fn is_vector(value: &Value) -> bool {
    value.as_array().is_some_and(|all| all.len() >= VECTOR && all.iter().all(Value::is_number))
}

fn by_metadata(metadata: &Map<String, Value>) -> Option<&'static Excluded> {
    if ["embedding", "embeddings", "vector", "vectors"]
        .iter()
        .any(|name| metadata.get(*name).is_some_and(holds_vector))
    {
        return Some(&EMBEDDINGS);
    }
    ["cacheControl", "cache_control", "prompt_cache_key", "promptCacheKey"]
        .iter()
        .any(|name| metadata.contains_key(*name))
        .then_some(&CACHE)
}

fn holds_vector(value: &Value) -> bool {
    is_vector(value)
        || value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_vector))
}

fn by_shape(value: &Value) -> Option<&'static Excluded> {
    if holds_vector(value) {
        return Some(&EMBEDDINGS);
    }
    let is_message = |value: &Value| value.get("role").is_some() && value.get("content").is_some();
    let all = |value: &Value, is: &dyn Fn(&Value) -> bool| {
        value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is))
    };
    if all(value, &is_message) {
        return Some(&CONVERSATION);
    }
    let members = value.as_object()?;
    if by_metadata(members).is_some() {
        return by_metadata(members);
    }
    let is_hit = |value: &Value| {
        ["score", "rank", "_score", "relevance", "distance"]
            .iter()
            .any(|name| value.get(name).is_some())
    };
    let is_symbol = |value: &Value| {
        value.get("name").is_some() && (value.get("line").is_some() || value.get("range").is_some())
    };
    for (name, value) in members {
        match name.as_str() {
            "results" | "hits" | "matches" | "documents" if all(value, &is_hit) => {
                return Some(&SEARCH_RESULTS);
            }
            "messages" | "conversation" | "history" | "turns" if all(value, &is_message) => {
                return Some(&CONVERSATION);
            }
            "symbols" if all(value, &is_symbol) => return Some(&CODE_INDEX),
            _ => {}
        }
    }
    None
}

fn by_text(text: &str) -> Option<&'static Excluded> {
    if text.trim_start().starts_with(['{', '[']) {
        return by_shape(&serde_json::from_str(text).ok()?);
    }
    // A log of messages: most lines begin with a speaker, and there is more than one.
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut names: Vec<&str> = lines.iter().filter_map(|line| Some(speaker(line)?.0)).collect();
    let labelled = names.len();
    names.sort_unstable();
    names.dedup();
    (labelled >= 3 && names.len() >= 2 && labelled * 2 >= lines.len() && labelled > names.len())
        .then_some(&CONVERSATION)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(metadata: &Value, text: &str, as_record: bool) -> Option<&'static str> {
        let offered =
            Offered { metadata: metadata.as_object(), text, as_record, ..Offered::default() };
        excluded(&offered).map(|(row, _)| row.name)
    }

    #[test]
    fn excluded_content_is_recognised_by_its_declaration() {
        for (kind, name) in [
            ("prompt-cache", "context caching"),
            ("code_index", "a code index"),
            ("Search Results", "search results"),
            ("embedding", "embeddings"),
            ("transcript", "raw conversation history"),
            ("scratchpad", "temporary variables"),
        ] {
            assert_eq!(row(&json!({"kind": kind}), "x", true), Some(name));
            assert_eq!(row(&json!({"type": kind}), "x", true), Some(name));
        }
        assert_eq!(row(&json!({"kind": "fact", "type": "comment"}), "x", true), None);
    }

    #[test]
    fn excluded_content_is_recognised_by_its_shape() {
        let vector = json!([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]);
        assert_eq!(row(&json!({"embedding": vector}), "x", true), Some("embeddings"));
        assert_eq!(row(&json!({}), &vector.to_string(), false), Some("embeddings"));
        let hits = json!({"results": [{"title": "a", "score": 0.5}]}).to_string();
        assert_eq!(row(&json!({}), &hits, false), Some("search results"));
        let symbols = json!({"symbols": [{"name": "main", "line": 3}]}).to_string();
        assert_eq!(row(&json!({}), &symbols, true), Some("a code index"));
        assert_eq!(
            row(&json!({"cache_control": {"type": "ephemeral"}}), "x", true),
            Some("context caching")
        );
        assert_eq!(row(&json!({"temporary": true}), "x", true), Some("temporary variables"));
        let mime =
            Offered { mime: Some("application/x-npy; v=1"), as_record: true, ..Offered::default() };
        assert_eq!(
            excluded(&mime).map(|(row, at)| (row.name, at)),
            Some(("embeddings", "mimeType"))
        );
    }

    #[test]
    fn conversation_is_input_and_not_a_record() {
        let log = "Ann: I prefer tea.\nBob: Me too.\nAnn: Good.\nBob: Fine.";
        assert_eq!(row(&json!({}), log, true), Some("raw conversation history"));
        assert_eq!(row(&json!({}), log, false), None);
        let messages = json!({"messages": [{"role": "user", "content": "hi"}]}).to_string();
        assert_eq!(row(&json!({}), &messages, true), Some("raw conversation history"));
        assert_eq!(row(&json!({"kind": "transcript"}), log, false), None);
        for text in [
            "Note: one\nTodo: two\nIdea: three",
            "Ann: hello",
            "Plain text.\nIn lines.",
            "{\"a\": 1}",
        ] {
            assert_eq!(row(&json!({}), text, true), None, "{text}");
        }
    }

    #[test]
    fn the_message_says_where_it_belongs() {
        for row in TABLE {
            assert!(row.message().contains("belongs"), "{row:?}");
        }
        assert!(EMBEDDINGS.message().contains("`memory_embeddings` table"));
    }
}

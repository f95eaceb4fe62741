//! Rules of `query`.

use std::collections::BTreeSet;

use crate::material::{clip, text};
use crate::rule::{Rule, provider, rules, types};
use crate::subject::Subject;
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::OptionalInterface;
use memhost_types::{Exception, Intent, QueryRequest, RecordHandle, RecordWrite, Snippet};

const FINDS: &str = "Finds records that fit the query. No effect that a later call could see, \
                     apart from use counts.";

pub(super) const RULES: &[Rule] = rules! { None;
    "QRY-01" "A written record is found at once"
        "A query with a record's own words, right after the write, finds the record."
        provider(
            "query",
            "A record written by an operation that was answered before this call began is found.",
        )
        => binding(found_at_once).unless(Exception::ReadAfterWrite);
    "QRY-02" "An empty result is not an error"
        "A query in a scope without records answers no snippets."
        provider("query", "an empty result is not an error.")
        => binding(nothing);
    "QRY-03" "A query returns at most the requested number"
        "Five records match. A query with `top-k` 2 returns at most two."
        types("query-request.top-k", "1 to 1,000: at most this many snippets.")
        => binding(top_k);
    "QRY-04" "Metadata filters work"
        "A query with a metadata filter of two members finds the record that has both, and none \
         that has one."
        types("query-request.metadata-filter",
            "An object: a record matches if its metadata has every member of it with an equal \
             value.")
        => binding(filter);
    "QRY-05" "Scores are numbers from 0 to 1"
        "The scores of a query's snippets are finite, from 0 to 1, and all of one kind."
        types("score", "How good a hit is, and what the number means. Values are finite; the host \
                        refuses others.")
        => binding(scores);
    "QRY-06" "The best hit comes first"
        "The scores of a query's snippets do not increase from one to the next."
        provider("context-bundle.snippets", "Best first.")
        => binding(best_first);
    "QRY-07" "A query changes nothing"
        "After five queries the list is unchanged, and the same query returns the same records."
        provider("query", FINDS)
        => binding(no_effect);
    "QRY-08" "A preamble needs no question"
        "An empty query with the intent `agent-preamble`, in a scope with records, returns some of \
         them."
        types("query-request.query",
            "May be empty with `agent-preamble`; then the most useful records of the scope are \
             meant.")
        => binding(preamble);
    "QRY-09" "A hit is a record"
        "`get-record` returns the record of each snippet, with the same text, and no id appears \
         twice."
        types("record-id",
            "The provider's own name for one record, unique within the binding and stable for the \
             record's life.")
        => binding(hits_are_records);
    "QRY-10" "Any text is a valid query"
        "Queries with quotes, brackets, operators and emoji, and of 16,000 bytes, get an answer."
        provider("query", "an empty result is not an error.")
        => binding(odd_questions);
};

/// Whether a record is among the snippets.
pub(super) fn has(snippets: &[Snippet], handle: &RecordHandle) -> bool {
    snippets.iter().any(|snippet| snippet.handle == *handle)
}

/// Writes records that match one question; answers the question and their handles.
pub(super) async fn several(
    subject: &Subject,
    count: usize,
) -> Result<(String, Vec<RecordHandle>), Stop> {
    let mut handles = Vec::new();
    for n in 0..count {
        handles
            .push(subject.put(subject.scope(), &format!("{}: note {}", text(0), word(n))).await?);
    }
    Ok((text(0), handles))
}

fn word(n: usize) -> &'static str {
    const WORDS: [&str; 8] =
        ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel"];
    WORDS[n % WORDS.len()]
}

/// The snippets of a query; skips the rule if there are none.
async fn some(subject: &Subject, request: &QueryRequest) -> Result<Vec<Snippet>, Stop> {
    let found = subject.ask(request).await?;
    if found.is_empty() { skipped("the query finds nothing") } else { Ok(found) }
}

async fn found_at_once(subject: &Subject) -> Verdict {
    for n in 0..3 {
        let handle = subject.put(subject.scope(), &text(n)).await?;
        let found = subject.query(subject.scope(), &text(n)).await?;
        if has(&found, &handle) {
            continue;
        }
        if subject.interfaces.contains(&OptionalInterface::Review)
            && has(&subject.pending(&subject.scope()).await?, &handle)
        {
            return skipped("the record waits for review");
        }
        return failed(format!(
            "`{}` is not among the {} found for its own words",
            handle.provider_record_id,
            found.len()
        ));
    }
    Ok(())
}

async fn nothing(subject: &Subject) -> Verdict {
    let found = subject.query(subject.scope(), &text(0)).await?;
    holds(found.is_empty(), || format!("{} snippets, but nothing was written", found.len()))
}

async fn top_k(subject: &Subject) -> Verdict {
    let (question, _) = several(subject, 5).await?;
    for top_k in [1, 2] {
        let request =
            QueryRequest { top_k: Some(top_k), ..subject.question(subject.scope(), &question) };
        let found = some(subject, &request).await?.len();
        holds(found <= top_k as usize, || format!("{found} snippets for a `top-k` of {top_k}"))?;
    }
    Ok(())
}

async fn filter(subject: &Subject) -> Verdict {
    let colours = |team: &str, colour: &str| {
        let mut metadata = subject.metadata_with("team", team).unwrap_or_default();
        metadata.insert("colour".to_owned(), colour.into());
        Some(metadata)
    };
    let record = |n, team, colour| RecordWrite {
        metadata: colours(team, colour),
        ..subject.write(&text(n))
    };
    let records =
        vec![record(0, "north", "red"), record(1, "north", "blue"), record(2, "south", "red")];
    let handles = subject.put_all(subject.scope(), records).await?;
    let filter = serde_json::json!({ "team": "north", "colour": "red" });
    for n in 0..3 {
        let question = subject.question(subject.scope(), &text(n));
        let found = subject
            .ask(&QueryRequest { metadata_filter: filter.as_object().cloned(), ..question })
            .await?;
        let strange = found.iter().find(|snippet| handles.first() != Some(&snippet.handle));
        if let Some(strange) = strange {
            return failed(format!("{} does not have both members", clip(&strange.text)));
        }
        holds(n > 0 || !found.is_empty(), || {
            "the record with both members is not found".to_owned()
        })?;
    }
    Ok(())
}

async fn scores(subject: &Subject) -> Verdict {
    let (question, _) = several(subject, 3).await?;
    let found = some(subject, &subject.question(subject.scope(), &question)).await?;
    // The host has refused scores that are not from 0 to 1 already.
    let kinds: BTreeSet<Option<&str>> = found
        .iter()
        .map(|snippet| {
            snippet.score_kind.map(|kind| {
                if kind == memhost_types::ScoreKind::Rank { "rank" } else { "similarity" }
            })
        })
        .collect();
    holds(kinds.len() == 1, || format!("the scores have several kinds: {kinds:?}"))
}

async fn best_first(subject: &Subject) -> Verdict {
    for words in ["lantern", "lantern lantern harbour", "green harbour lantern at dusk"] {
        subject.put(subject.scope(), words).await?;
    }
    let found = some(subject, &subject.question(subject.scope(), "harbour lantern green")).await?;
    let scores: Vec<f64> = found.iter().filter_map(|snippet| snippet.score).collect();
    if scores.is_empty() {
        return skipped("the snippets have no scores");
    }
    holds(scores.windows(2).all(|pair| pair[0] >= pair[1]), || format!("the scores are {scores:?}"))
}

async fn no_effect(subject: &Subject) -> Verdict {
    let (question, _) = several(subject, 3).await?;
    let before = subject.list(subject.scope()).await?;
    let ids =
        |found: Vec<Snippet>| found.into_iter().map(|snippet| snippet.handle).collect::<Vec<_>>();
    let first: BTreeSet<String> = names(&ids(subject.query(subject.scope(), &question).await?));
    for _ in 0..4 {
        let again = names(&ids(subject.query(subject.scope(), &question).await?));
        holds(first == again, || format!("the query returned {first:?}, then {again:?}"))?;
    }
    let (before, after) = (names(&ids(before)), names(&ids(subject.list(subject.scope()).await?)));
    holds(before == after, || format!("{} records before, {} after", before.len(), after.len()))
}

fn names(handles: &[RecordHandle]) -> BTreeSet<String> {
    handles.iter().map(|handle| handle.provider_record_id.to_string()).collect()
}

async fn preamble(subject: &Subject) -> Verdict {
    several(subject, 2).await?;
    let request =
        QueryRequest { intent: Intent::AgentPreamble, ..subject.question(subject.scope(), "") };
    let found = subject.ask(&request).await?;
    holds(!found.is_empty(), || "no snippet, but there are two records".to_owned())
}

async fn hits_are_records(subject: &Subject) -> Verdict {
    let (question, _) = several(subject, 4).await?;
    let found = some(subject, &subject.question(subject.scope(), &question)).await?;
    let handles: Vec<RecordHandle> = found.iter().map(|snippet| snippet.handle.clone()).collect();
    holds(names(&handles).len() == found.len(), || "the answer has an id twice".to_owned())?;
    for snippet in found {
        match subject.get(subject.scope(), &snippet.handle).await? {
            None => {
                return failed(format!(
                    "`get-record` has no `{}`",
                    snippet.handle.provider_record_id
                ));
            }
            // A snippet may be a part of a long record, but these records are short.
            Some(record) => holds(record.text == snippet.text, || {
                format!(
                    "the text of the snippet is {}, of the record {}",
                    clip(&snippet.text),
                    clip(&record.text)
                )
            })?,
        }
    }
    Ok(())
}

async fn odd_questions(subject: &Subject) -> Verdict {
    subject.put(subject.scope(), &text(0)).await?;
    let long = text(0).repeat(450);
    for question in [
        "\"",
        "((",
        "AND OR NOT",
        "* ? ~ ^ : \\ /",
        "🦀🦀",
        "' OR 1=1 --",
        "\u{0}\u{7}",
        "%{{}}",
        &long[..16_000],
    ] {
        subject.query(subject.scope(), question).await?;
    }
    Ok(())
}

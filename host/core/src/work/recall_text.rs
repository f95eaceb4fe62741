//! Recall as a block of text for the start of a run, within a budget of tokens. It is cut between snippets, never inside
//! one, and each says where it comes from.

use std::collections::HashSet;
use std::fmt::Write;

use memhost_types::{ContextBlock, Recall, Snippet, SourceRef};

const HEADING: &str = "## Memory\n";

/// The block for what some bindings found, first come, first served: what does not fit is left out, and what comes after
/// it and is shorter may still fit. Tokens are those of `o200k_base`. Other models' encodings differ by some percent.
pub fn render(found: &[(&str, &Recall)], token_budget: u32) -> ContextBlock {
    let budget = token_budget as usize;
    let mut block =
        ContextBlock { text: String::new(), tokens: 0, token_budget, included: 0, omitted: 0, degraded: Vec::new() };
    for (binding, recall) in found {
        if let Some(reason) = &recall.degraded {
            block.degraded.push(format!("`{binding}`: {reason}"));
        }
        let mut told = HashSet::new();
        if let Some(summary) = recall.profile_summary.as_deref() {
            let lines: Vec<String> = summary.lines().map(plain_line).filter(|line| !line.is_empty()).collect();
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            // A summary that does not fit is not counted as omitted.
            if !text.is_empty() && add(&mut block, &text, budget) {
                told.extend(lines.iter().filter_map(|line| Some(line.strip_prefix("- ")?.to_owned())));
            }
        }
        for snippet in &recall.snippets {
            // What a provider lists in its summary is not repeated.
            match told.contains(&one_line(&snippet.text)) || add(&mut block, &line(snippet), budget) {
                true => block.included += 1,
                false => block.omitted += 1,
            }
        }
    }
    block
}

/// Adds a line if the whole block still fits. Tokens do not add up across a seam, so the block is counted as a whole.
fn add(block: &mut ContextBlock, line: &str, budget: usize) -> bool {
    let start = if block.text.is_empty() { HEADING } else { "" };
    let text = format!("{}{start}{line}", block.text);
    let Some(count) = memhost_tokens::count_up_to(&text, budget) else { return false };
    block.text = text;
    block.tokens = u32::try_from(count).unwrap_or(u32::MAX);
    true
}

fn line(snippet: &Snippet) -> String {
    let text = snippet.summary.as_deref().filter(|summary| !summary.trim().is_empty()).unwrap_or(&snippet.text);
    let mut line = format!("- {}", one_line(text));
    let mut origin: Vec<String> = snippet.source.iter().flat_map(provenance).collect();
    origin.extend(snippet.created_at.map(|at| at.strftime("%Y-%m-%d").to_string()));
    if !origin.is_empty() {
        let _ = write!(line, " ({})", origin.join(", "));
    }
    line.push('\n');
    line
}

/// A line of a summary, whose headings must not look like ours.
fn plain_line(line: &str) -> String {
    let line = one_line(line);
    let heading = line.trim_start_matches('#');
    match heading.strip_prefix(' ') {
        Some(heading) if line.starts_with('#') => format!("{heading}:"),
        _ => line,
    }
}

/// A record is one item of the list, however many lines it has: a heading in it must not look like ours.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn provenance(source: &SourceRef) -> Vec<String> {
    let names = [
        ("comment", &source.comment_id),
        ("document", &source.document_key),
        ("issue", &source.issue_id),
        ("run", &source.run_id),
        ("activity", &source.activity_id),
        ("from", &source.external_ref),
    ];
    let named = names.into_iter().filter_map(|(name, id)| Some(format!("{name} {}", one_line(id.as_deref()?))));
    let mut all: Vec<String> = named.collect();
    if all.is_empty() {
        all.push(source.kind.as_str().replace('_', " "));
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use memhost_tokens::count;
    use memhost_types::{RecordHandle, SourceKind};

    fn snippet(text: &str) -> Snippet {
        Snippet {
            handle: RecordHandle { provider_key: "p".parse().unwrap(), provider_record_id: "r".parse().unwrap() },
            text: text.to_owned(),
            score: None,
            score_kind: None,
            summary: None,
            source: Some(SourceRef {
                issue_id: Some("PAP-7".to_owned()),
                ..SourceRef::new(SourceKind::IssueComment, "acme".parse().unwrap())
            }),
            metadata: None,
            created_at: Some("2026-11-20T10:00:00Z".parse().unwrap()),
            updated_at: None,
        }
    }

    #[test]
    fn snippets_stand_whole_with_where_they_come_from() {
        let recall = Recall {
            snippets: vec![snippet("the gate code is 17"), snippet(&"long ".repeat(500)), snippet("# not\na heading")],
            profile_summary: Some("Likes short answers.".to_owned()),
            degraded: None,
        };
        let block = render(&[("default", &recall)], 80);
        insta::assert_snapshot!(block.text, @r"
        ## Memory
        Likes short answers.
        - the gate code is 17 (issue PAP-7, 2026-11-20)
        - # not a heading (issue PAP-7, 2026-11-20)
        ");
        assert_eq!((block.included, block.omitted), (2, 1));
    }

    #[test]
    fn what_a_summary_lists_is_not_told_twice() {
        let recall = Recall {
            snippets: vec![snippet("likes  tea"), snippet("the gate code is 17")],
            profile_summary: Some("## About This User\n\n- likes tea\n- knows Rust\n\n".to_owned()),
            degraded: None,
        };
        let block = render(&[("facts", &recall)], 80);
        insta::assert_snapshot!(block.text, @r"
        ## Memory
        About This User:
        - likes tea
        - knows Rust
        - the gate code is 17 (issue PAP-7, 2026-11-20)
        ");
        assert_eq!((block.included, block.omitted), (2, 0));
        let without = render(&[("facts", &recall)], 12);
        assert_eq!((without.included, without.omitted), (0, 2), "{}", without.text);
    }

    #[test]
    fn nothing_found_is_nothing_to_read() {
        let recall = Recall { degraded: Some("it took longer than 5 ms".to_owned()), ..Recall::default() };
        let block = render(&[("default", &recall)], 500);
        assert_eq!((block.text.as_str(), block.tokens), ("", 0));
        assert_eq!(block.degraded, ["`default`: it took longer than 5 ms"]);
    }

    proptest! {
        #[test]
        fn the_budget_holds(texts in prop::collection::vec(".{0,80}", 0..12), budget in 1..200_u32) {
            let recall = Recall { snippets: texts.iter().map(|text| snippet(text)).collect(), ..Recall::default() };
            let block = render(&[("default", &recall)], budget);
            prop_assert!(count(&block.text) <= budget as usize);
            prop_assert_eq!(block.tokens as usize, count(&block.text));
            prop_assert_eq!((block.included + block.omitted) as usize, texts.len());
        }
    }
}

//! The summary that a provider makes of a scope, for the start of a run, and what of it somebody
//! gets who must not see all records. The host does not rely on the provider: it keeps the lines
//! that are records which it answers anyway.

use std::collections::HashSet;

use crate::runner::Answered;
use memhost_executor::off_executor;
use memhost_sandbox::OptionalInterface;
use memhost_types::{Intent, QueryRequest, Snippet};

/// Lines that tell of no record: the headings of lists about somebody, and the note below lists
/// that are too long, before its number.
const HEADINGS: [&str; 2] = ["## About This User", "## About This Workspace"];
const NOTE: &str = "Left out, oldest first: ";
const LEFT_OUT: &str = "lines of the summary are left out: records of the binding are private to \
                        others or wait for a \
                        person, and the lines are the text of no record that was found for you";

impl Answered<'_> {
    /// Asks for the summary where the query is for the start of a run, as a part of that operation.
    /// The answer to the query is valid without it: an error is only logged.
    pub(crate) async fn summary(&mut self, request: &QueryRequest) -> Option<String> {
        let serving = self.serving;
        if request.intent != Intent::AgentPreamble
            || !serving.plugin.component.exports(OptionalInterface::Profile)
        {
            return None;
        }
        match Box::pin(serving.instances.profile(&request.scope)).await {
            Ok(profile) => {
                self.ending.add_usage(profile.value.usage);
                self.ending.add_metered(profile.metered);
                self.ending.add_call(profile.log, profile.provider_us);
                profile.value.summary
            }
            Err(failure) => {
                self.ending.add_metered(failure.metered);
                self.ending.add_call(failure.log, failure.provider_us);
                tracing::warn!(error = %failure.error, binding = %serving.binding.key, "a query \
                    has no summary");
                None
            }
        }
    }
}

/// Records as the lines that a summary may have of them.
pub(super) fn lines_of(found: &[Snippet]) -> HashSet<String> {
    let texts =
        found.iter().flat_map(|snippet| [Some(&snippet.text), snippet.summary.as_ref()]).flatten();
    off_executor(texts.clone().map(String::len).sum(), || {
        texts.map(|text| one_line(text)).collect()
    })
}

/// What of a summary is the text of records that its reader may see, and why something is missing.
/// `answers` are the lines of all that the provider answered: what is one of those is a record that
/// its reader must not see, and nothing is missing without it.
pub(super) fn only_of(
    summary: &str,
    answers: &HashSet<String>,
    may_see: &[Snippet],
) -> (Option<String>, Option<String>) {
    let known = lines_of(may_see);
    off_executor(summary.len(), || {
        let has = |lines: &HashSet<String>, line: &str| {
            let line = line.trim();
            let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
            item.into_iter().chain([line]).any(|text| lines.contains(&one_line(text)))
        };
        let (mut kept, mut heading) = (String::new(), None);
        let (mut is_whole, mut are_records, mut is_apart) = (true, true, false);
        let mut keep = |line: &str, is_apart: bool| {
            kept.push_str(if is_apart && !kept.is_empty() { "\n" } else { "" });
            kept.push_str(&format!("{line}\n"));
        };
        for line in summary.lines() {
            if line.trim().is_empty() {
                is_apart = true;
                continue;
            }
            if HEADINGS.contains(&line) {
                heading = Some((line, is_apart));
            } else if is_note(line) || has(&known, line) {
                // No heading without something below it.
                if let Some((heading, is_apart)) = heading.take() {
                    keep(heading, is_apart);
                }
                keep(line, is_apart);
            } else {
                is_whole = false;
                are_records &= has(answers, line);
                continue;
            }
            is_apart = false;
        }
        if is_apart && !kept.is_empty() {
            kept.push('\n');
        }
        match is_whole {
            true => (Some(summary.to_owned()), None),
            false => {
                let why = (!are_records).then(|| LEFT_OUT.to_owned());
                (Some(kept).filter(|kept| !kept.is_empty()), why)
            }
        }
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A number says nothing of a record.
fn is_note(line: &str) -> bool {
    line.strip_prefix(NOTE).is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snippet(text: &str) -> Snippet {
        let value = serde_json::json!({
            "handle": {"providerKey": "p", "providerRecordId": "r"}, "text": text,
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_summary_has_the_lines_that_are_records_which_its_reader_sees() {
        let seen = [snippet("Likes tea"), snippet("Chose\n Zustand"), snippet("- a dash")];
        let only = |summary: &str, hidden: &str| {
            let answers = lines_of(&[&seen[..], &[snippet(hidden)]].concat());
            only_of(summary, &answers, &seen)
        };
        let whole = "## About This User\n\n- Likes tea\n- - a dash\n\n## About This Workspace\n\n- \
                     Chose Zustand\n\n\
                     Left out, oldest first: 7\n\n";
        assert_eq!(only(whole, "x"), (Some(whole.to_owned()), None), "to the byte");
        let leaking = whole.replace("Likes tea", "Likes marzipan");
        let (kept, why) = only(&leaking, "x");
        assert!(!kept.unwrap().contains("marzipan") && why.unwrap().contains("private to others"));
        let (kept, why) = only(&leaking, "Likes marzipan");
        assert!(
            !kept.unwrap().contains("marzipan") && why.is_none(),
            "a record that is none of the reader's"
        );
        let mixed = "## About Ada\n\n- Hates tea\n\n## About This User\n\n- Hates tea\n\n## About \
                     This Workspace\n\n\
                     - Chose Zustand\nLikes tea and marzipan\nLeft out, oldest first: ada";
        let (kept, why) = only(mixed, "x");
        assert_eq!(kept.unwrap(), "## About This Workspace\n\n- Chose Zustand\n");
        assert!(why.is_some());
        assert_eq!(only("She likes marzipan.", "x").0, None);
    }
}

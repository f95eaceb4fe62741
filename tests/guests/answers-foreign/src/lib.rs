//! `answers-foreign` answers a query with a source of another company; for `long id` with a record
//! id of 600 bytes, for `empty id` with an empty one, for `same id` with one id twice. What is
//! wrong must be left out, and the sound record beside it answered.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct AnswersForeign;

impl Guest for AnswersForeign {
    const KEY: &str = "answers-foreign";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        Ok(match request.query.as_str() {
            "long id" => {
                let long = "x".repeat(600);
                answer([(long.as_str(), "under a long id"), ("sound", "sound")])
            }
            "empty id" => answer([("", "under no id"), ("sound", "sound")]),
            "same id" => answer([("same", "once"), ("same", "twice")]),
            _ => {
                let source = SourceRef {
                    kind: SourceKind::ManualNote,
                    company_id: format!("not-{}", request.scope.company_id),
                    issue_id: None,
                    comment_id: None,
                    document_key: None,
                    run_id: None,
                    activity_id: None,
                    external_ref: None,
                };
                vec![Snippet {
                    source: Some(source),
                    ..Snippet::new("foreign", "of another company")
                }]
                .into()
            }
        })
    }
}

well_behaved::export!(AnswersForeign);

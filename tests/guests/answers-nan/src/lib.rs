//! `answers-nan` answers a query with the score NaN; for `infinite` it is infinite, for `large`
//! 1.5, for `negative` -0.5. The record must be answered without it.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference};

struct AnswersNan;

impl Guest for AnswersNan {
    const KEY: &str = "answers-nan";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let score = match request.query.as_str() {
            "infinite" => f64::INFINITY,
            "large" => 1.5,
            "negative" => -0.5,
            _ => f64::NAN,
        };
        Ok(vec![Snippet {
            score: Score::Similarity(score),
            ..Snippet::new("scored", "of no worth")
        }]
        .into())
    }
}

well_behaved::export!(AnswersNan);

//! Measures recall: a provider answers the questions of a benchmark, and the ranked answers are
//! compared with the evidence. For operators who choose a provider, and for authors who improve
//! one.

mod error;
mod locomo;
mod metrics;
mod run;

pub use error::EvalError;
pub use locomo::{Conversation, Question, Turn, read as read_locomo};
pub use metrics::{Category, Latency, Score, Scores};
pub use run::{EvalOptions, Evaluation, Progress, run};

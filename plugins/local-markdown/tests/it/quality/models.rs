//! Embedding models for tests: some that know nothing, and one that knows which question a note
//! answers.

use std::hash::{DefaultHasher, Hash, Hasher};

use memhost_local_markdown::LocalMarkdown;
use memhost_sdk::Extraction;
use memhost_sdk::types::Scope;

use super::bodies::paraphrases;

/// The dimensions of every vector here.
pub(crate) const DIMENSIONS: u32 = 384;

/// Text to a vector.
pub(crate) type Model = fn(&str) -> Vec<f32>;

/// Models that tell nothing of anything, by what is wrong with them.
pub(crate) const IGNORANT: [(&str, Model); 4] = [
    ("random", |text| unit(noise(text))),
    ("the same for everything", |_| unit(vec![1.0; DIMENSIONS as usize])),
    ("random in a narrow cone", |text| {
        unit(noise(text).into_iter().map(|number| number + 3.0).collect())
    }),
    ("without numbers", |_| vec![f32::NAN; DIMENSIONS as usize]),
];

/// A note and its question are as near as with a good model, everything else as far as with any.
pub(crate) fn understands(text: &str) -> Vec<f32> {
    let body = paraphrases(true);
    let of_question = body
        .questions
        .iter()
        .find(|question| question.text == text)
        .map(|question| &question.relevant);
    let of_record =
        body.records.iter().find(|record| record.text == text).map(|record| record.id.clone());
    let about = of_question.and_then(|relevant| relevant.first().cloned()).or(of_record);
    let own = noise(text);
    unit(match about {
        Some(about) => own.iter().zip(noise(&about)).map(|(own, about)| own + about).collect(),
        None => own,
    })
}

/// Runs the jobs that captures left until all have ended.
pub(crate) fn run_jobs(provider: &mut LocalMarkdown) {
    for job in provider.list_jobs(Scope::company("company"), None, 100).unwrap().jobs {
        while provider.run_job(job.provider_job_id.clone()).unwrap().job.finished_at.is_none() {}
    }
}

/// About normal, with variance 1 a number.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "bytes of a hash")]
fn noise(text: &str) -> Vec<f32> {
    let number = |at: u32| {
        let mut hasher = DefaultHasher::new();
        (text, at).hash(&mut hasher);
        let sum: f64 =
            hasher.finish().to_le_bytes().iter().map(|byte| f64::from(*byte) / 127.5 - 1.0).sum();
        (sum / (8.0_f64 / 3.0).sqrt()) as f32
    };
    (0..DIMENSIONS).map(number).collect()
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|number| *number /= length);
    vector
}

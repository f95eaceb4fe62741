//! Records that wait for a person. What waits is the provider's own choice, so that it is offered what few would trust.

use super::Subject;
use crate::material::text;
use crate::verdict::{Stop, skipped};
use memhost_types::{CaptureMode, CaptureRequest, Snippet};

/// How a record may come to wait.
#[derive(Clone, Copy)]
enum Way {
    /// It says of itself that nobody is sure of it.
    Unsure,
    /// Personal data is in it.
    Personal,
    /// The provider makes it itself out of what sounds like a guess.
    Residue,
}

impl Subject {
    /// Has so many records wait, made of the texts from this number on, and answers them.
    pub(crate) async fn held(&self, first: usize, count: usize) -> Result<Vec<Snippet>, Stop> {
        let known = self.pending(&self.scope()).await?;
        let mut held: Vec<Snippet> = Vec::new();
        let mut ways = vec![Way::Unsure, Way::Personal, Way::Residue];
        for n in first..first + count {
            let before = held.len();
            for way in std::mem::take(&mut ways) {
                // What refuses this way may take another.
                if self.offer(way, n).await.is_err() {
                    continue;
                }
                let is_new = |snippet: &Snippet| !known.iter().chain(&held).any(|old| old.handle == snippet.handle);
                let new: Vec<Snippet> = self.pending(&self.scope()).await?.into_iter().filter(is_new).collect();
                if !new.is_empty() {
                    held.extend(new);
                    ways.push(way);
                    break;
                }
            }
            if held.len() == before {
                return match before {
                    0 => skipped(
                        "nothing waits for a person: neither a captured record that says `\"confidence\": 0`, nor one \
                         with an e-mail address in it, nor what the provider makes of a guess",
                    ),
                    _ => skipped(format!("only {before} of {count} records wait for a person")),
                };
            }
        }
        Ok(held)
    }

    async fn offer(&self, way: Way, n: usize) -> Result<(), Stop> {
        let request = match way {
            Way::Unsure => {
                let mut metadata = (*self.metadata).clone();
                metadata.insert("confidence".to_owned(), 0.into());
                let request = self.capture_of(&text(n), CaptureMode::CaptureRecord);
                CaptureRequest { metadata: Some(metadata), ..request }
            }
            Way::Personal => {
                let said = format!("{}, says mira{n}@example.com", text(n));
                self.capture_of(&said, CaptureMode::CaptureRecord)
            }
            Way::Residue => {
                let guess = format!("Maybe it is like this, I am not sure: {}", text(n));
                self.capture_of(&guess, CaptureMode::CaptureResidue)
            }
        };
        let jobs = self.capture(self.operation(), &request).await?.jobs;
        self.work_off(&jobs).await
    }
}

//! Records that wait for review. The provider decides which records wait, so the suite offers
//! doubtful ones.

use super::Subject;
use crate::material::text;
use crate::verdict::{Stop, skipped};
use memhost_types::{CaptureMode, CaptureRequest, Snippet};

/// A way to create a record that waits for review.
#[derive(Clone, Copy)]
enum Way {
    /// The record says that it is uncertain.
    Unsure,
    /// The record has personal data.
    Personal,
    /// The provider extracts it from a text that sounds like a guess.
    Residue,
}

impl Subject {
    /// Creates `count` records that wait for review, from the texts starting at `first`, and
    /// answers them.
    pub(crate) async fn make_pending(
        &self,
        first: usize,
        count: usize,
    ) -> Result<Vec<Snippet>, Stop> {
        let known = self.pending(&self.scope()).await?;
        let mut held: Vec<Snippet> = Vec::new();
        let mut ways = vec![Way::Unsure, Way::Personal, Way::Residue];
        for n in first..first + count {
            let before = held.len();
            for way in std::mem::take(&mut ways) {
                // A provider that refuses this way may accept another.
                if self.offer(way, n).await.is_err() {
                    continue;
                }
                let is_new = |snippet: &Snippet| {
                    !known.iter().chain(&held).any(|old| old.handle == snippet.handle)
                };
                let new: Vec<Snippet> =
                    self.pending(&self.scope()).await?.into_iter().filter(is_new).collect();
                if !new.is_empty() {
                    held.extend(new);
                    ways.push(way);
                    break;
                }
            }
            if held.len() == before {
                return match before {
                    0 => skipped(
                        "no record waits for review: neither a captured record with \
                         `\"confidence\": 0`, nor one with \
                         an e-mail address, nor the records that the provider extracts from a \
                         guess",
                    ),
                    _ => skipped(format!("only {before} of {count} records wait for review")),
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

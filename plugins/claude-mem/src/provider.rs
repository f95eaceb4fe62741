//! What claude-mem is to the SDK: a service with these routes, and sessions in which one tool was
//! used as jobs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use memhost_sdk::Health;
use memhost_sdk::http::{Client, Error};
use memhost_sdk::remote::{
    Capture, Elsewhere, Kept, Learnt, Progress, Record, Search, Service, Tag, Work, now, owner,
    partition_name, plain, to_unix_millis,
};
use memhost_sdk::types::{self, *};
use memhost_sdk::words::is_mark;
use serde_json::{Value, json};

use crate::api::{ClaudeMem, NAME, Observation, Processing, Use, session};
use crate::config::Config;

/// Observations of one page of the list.
const PAGE: usize = 100;
/// The most words of a query that are asked for one by one: the longest ones.
const WORDS: usize = 8;
/// The oldest claude-mem that has all that is asked of it.
const OLDEST: (u64, u64, u64) = (13, 24, 23);
/// Characters of the text that begin an observation's title.
const TITLE: usize = 60;

impl Service for ClaudeMem {
    type Config = Config;

    const MOST_HITS: usize = 200;
    const ONLY_ADDS: bool = true;

    fn describe() -> Description {
        Description::new(
            "claude-mem",
            env!("CARGO_PKG_VERSION"),
            "Keeps records as observations of claude-mem",
        )
        .configured_by::<Config>()
        .extracts()
        .concurrent(8)
        // A record that is replaced takes up to six requests, and a call has 64.
        .at_most(10, 10)
        .without([Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists])
        .require(
            Permission::Http(HttpPermission::to("{{config:/url}}")),
            "The observations are there",
        )
        .require(
            Permission::Storage(64 << 20),
            "Notes what was written, and which observation replaced which",
        )
    }

    fn open(config: Config) -> Result<Self, types::Error> {
        Ok(Self { http: Client::new(&config.url)?, config, project: String::new() })
    }

    fn serve(&mut self, company: &str) {
        self.project = owner(self.config.project.as_deref(), company);
    }

    fn is_id(&self, id: &str) -> bool {
        (1..=15).contains(&id.len())
            && !id.starts_with('0')
            && id.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// claude-mem answers with the observation that is there if title and text are the same. The
    /// title has the key and what tells one tag from another.
    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        // It cuts white space off.
        let kept = json!(Kept::new(key, text, tag, text.trim() != text));
        let start: String =
            tag.summary.as_deref().unwrap_or(text.trim()).chars().take(TITLE).collect();
        let start = start.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = format!("{start} [{} {:08x}]", plain(key), fingerprint(&kept.to_string()));
        let body = json!({
            "text": text, "title": title, "project": self.project, "metadata": {NAME: kept},
        });
        Ok(self.http.post("/api/memory/save").json(&body).at("/id").answer::<u64>()?.to_string())
    }

    /// Among the newest, which is where a lost answer leads.
    fn written(&self, _: &str, _: &str) -> Result<Vec<Record>, Error> {
        Ok(self.list(1)?.0)
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let request = self.http.get(&format!("/api/observation/{id}"));
        let found = request.answer_about(|seen: &Observation| seen.id.to_string() == id)?;
        Ok(found.filter(|seen| seen.project == self.project).map(Record::from))
    }

    fn replace(&self, old: &Record, _: &str, _: &Tag) -> Result<(), Error> {
        Err(Error::unexpected(
            "replacing an observation",
            &format!("claude-mem does not change {}", old.id),
        ))
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.http.delete(&format!("/api/observation/{id}")).answer_if_found::<Value>().map(drop)
    }

    /// What the model saw stays in claude-mem's list of tool uses, and Chroma keeps what was
    /// deleted.
    fn left_of(&self, gone: &Record) -> Result<ForgetEffect, Error> {
        Ok(ForgetEffect::hard_unless(gone.is_extracted || self.config.semantic))
    }

    /// claude-mem finds the query as one phrase. Each of its words is asked for, too: a word that
    /// few observations have counts more, and the whole phrase most.
    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, Error> {
        let whole = self.observations(search.query, 0, search.most)?;
        let lower = search.query.to_lowercase();
        let mut words: Vec<_> = lower
            .split(|c: char| !c.is_alphanumeric() && !is_mark(c))
            .filter(|word| !word.is_empty())
            .collect();
        words.sort_by_key(|word| (Reverse(word.len()), *word));
        words.dedup();
        if self.config.semantic || words == [lower.trim()] || whole.len() >= search.most {
            return Ok(whole.into_iter().map(Record::from).collect());
        }
        let lists = words
            .into_iter()
            .take(WORDS)
            .map(|word| (self.observations(word, 0, Self::MOST_HITS), 1.0));
        let mut found: BTreeMap<u64, (f64, Observation)> = BTreeMap::new();
        for (hits, share) in std::iter::once((Ok(whole), WORDS as f64)).chain(lists) {
            let hits = hits?;
            let weight = share / (hits.len() + 1) as f64;
            for hit in hits {
                found.entry(hit.id).or_insert((0.0, hit)).0 += weight;
            }
        }
        let mut hits: Vec<_> = found.into_values().collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(hits.into_iter().take(search.most).map(|(_, seen)| seen.into()).collect())
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let found = self.observations("", (page as usize - 1) * PAGE, PAGE)?;
        let is_full = found.len() == PAGE;
        Ok((found.into_iter().map(Record::from).collect(), is_full))
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.config.infer.is_for(mode)
    }

    /// Imports a session of the project and gives it what is to be observed. claude-mem does both
    /// once.
    fn learn(&self, capture: &Capture<'_>) -> Result<Learnt, Error> {
        let (id, started) = (session(capture.key), capture.tag.created_at.as_deref());
        let at = started.and_then(to_unix_millis).or_else(|| to_unix_millis(&now()));
        let session = json!({
            "content_session_id": id, "memory_session_id": null, "project": self.project,
            "platform_source": NAME, "user_prompt": null, "started_at": started.unwrap_or_default(),
            "started_at_epoch": at, "completed_at": null, "completed_at_epoch": null,
            "status": "active",
        });
        let imported =
            self.http.post("/api/import").json(&json!({"sessions": [session]})).at("/success");
        if !imported.answer::<bool>()? {
            return Err(Error::unexpected("POST /api/import", "it does not say that it succeeded"));
        }
        let body = json!({
            "contentSessionId": id, "platformSource": NAME, "tool_name": NAME, "tool_input": {},
            "tool_response": capture.text, "tool_use_id": id,
            "agentId": partition_name(capture.scope), "agentType": NAME,
        });
        let path = "/api/sessions/observations";
        let queued: Value = self.http.post(path).json(&body).answer()?;
        match self.use_of(&id)? {
            Some(_) if queued["status"] == "queued" => Ok(Learnt::job(id)),
            _ => Err(Error::unexpected(path, &queued.to_string())),
        }
    }

    fn learnt(&self, capture: &Capture<'_>) -> Result<Option<Learnt>, Error> {
        Ok(self.use_of(&session(capture.key))?.map(|used| Learnt::job(used.tool_use_id)))
    }
}

impl Elsewhere for ClaudeMem {
    /// claude-mem has no jobs. A use has an observation once the model has made one, and no more
    /// will come once the worker has nothing to do.
    fn ask(&self, id: &str, _: &Work) -> Result<Progress, Error> {
        let status: Processing = self.http.get("/api/processing-status").answer()?;
        Ok(match self.use_of(id)? {
            None => Progress::failed("claude-mem does not know the session any more"),
            Some(Use { observation_id: Some(known), memory_session_id, .. }) => {
                let mut newest = self.observations("", 0, Self::MOST_HITS)?;
                newest.retain(|seen| Some(&seen.memory_session_id) == memory_session_id.as_ref());
                let mut made: Vec<_> = newest.into_iter().map(|seen| seen.id.to_string()).collect();
                // So many others may have been made meanwhile that it is not among the newest.
                if !made.contains(&known.to_string()) {
                    made.extend(self.batch(&[known])?.into_iter().map(|record| record.id));
                }
                Progress::done(made)
            }
            Some(_) if status.is_processing || status.queue_depth > 0 => Progress::Working,
            Some(_) if status.parked_sessions > 0 => {
                Progress::failed("claude-mem's model cannot be used; its log says why")
            }
            Some(_) => Progress::done(Vec::new()),
        })
    }
}

impl Health for ClaudeMem {
    fn check_health(&mut self) -> Result<Report, types::Error> {
        let version: String = self.http.get("/api/health").at("/version").answer()?;
        if is_older(&version, OLDEST) {
            let (major, minor, patch) = OLDEST;
            let message = format!(
                "claude-mem {version} at {} is too old: this provider needs \
                 {major}.{minor}.{patch} or later; update claude-mem there and start its worker \
                 again",
                self.config.url
            );
            return Err(types::Error::unavailable(message, None));
        }
        Ok(Report { summary: format!("claude-mem {version} answers at {}", self.config.url) })
    }
}

/// Whether a version is before another one. A pre-release is before its release. What cannot be
/// read is not known to be older.
fn is_older(version: &str, than: (u64, u64, u64)) -> bool {
    let release = version.split('+').next().unwrap_or_default();
    let (numbers, is_early) = match release.trim_start_matches('v').split_once('-') {
        Some((numbers, _)) => (numbers, true),
        None => (release.trim_start_matches('v'), false),
    };
    let mut parts = numbers.split('.').map(|part| part.parse().ok());
    let mut next = || parts.next().unwrap_or(Some(0));
    let (Some(major), Some(minor), Some(patch)) = (next(), next(), next()) else { return false };
    let found: (u64, u64, u64) = (major, minor, patch);
    found < than || (found == than && is_early)
}

/// A number that tells texts apart, FNV-1a. Nothing but which observations claude-mem takes for one
/// depends on it.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for version in ["13.24.22", "13.9.99", "12.99.0", "v13.24.22", "13.24.23-beta.1", "13.24"] {
            assert!(is_older(version, OLDEST), "{version}");
        }
        for version in ["13.24.23", "13.24.100", "13.25", "14.0.0-rc.1+5", "v13.25.3", "main", ""] {
            assert!(!is_older(version, OLDEST), "{version}");
        }
    }
}

//! The answers of the optional interfaces.

use super::{Checked, Normalize, bad, count, job, name, text_size, usages};
use crate::answer::{BrowseAnswer, ChunkAnswer, Correction, ExplainAnswer, ImportAnswer, JobAnswer, ProfileAnswer};
use crate::bindings::browse::exports::paperclip::memory::browse as tree;
use crate::bindings::correction::exports::paperclip::memory::correction as fix;
use crate::bindings::explain::exports::paperclip::memory::explain as trace;
use crate::bindings::extraction::exports::paperclip::memory::extraction as extract;
use crate::bindings::profile::exports::paperclip::memory::profile as summary;
use crate::bindings::provider::paperclip::memory::types as wit;
use crate::bindings::transfer::exports::paperclip::memory::transfer as moved;
use memhost_types::{BrowseNode, CompanyId, Contribution, ExtractionJob, HitTrace, Snippet, limits};

impl Normalize {
    pub(crate) fn correct(&self, answer: fix::CorrectResponse) -> Checked<Correction> {
        Ok(Correction {
            record: self.handle(&answer.record_id)?,
            superseded: answer.superseded.map(|id| self.handle(&id)).transpose()?,
            usage: usages(answer.usage)?,
        })
    }

    pub(crate) fn explain(&self, answer: trace::Explanation, top_k: u32) -> Checked<ExplainAnswer> {
        count("hits", answer.hits.len(), top_k as usize)?;
        text_size("query", &answer.query, limits::MAX_JSON_BYTES)?;
        let query = match serde_json::from_str(&answer.query) {
            Ok(query) => query,
            Err(error) => return bad(format!("`query` is not JSON: {error}")),
        };
        let contribution = |part: trace::Contribution| {
            if !part.value.is_finite() {
                return bad(format!("the contribution `{}` is {}; numbers are finite", part.name, part.value));
            }
            Ok(Contribution { name: name("contribution.name", part.name)?, value: part.value })
        };
        let hit = |hit: trace::HitTrace| {
            count("contributions", hit.contributions.len(), limits::MAX_CONTRIBUTIONS)?;
            let contributions = hit.contributions.into_iter().map(contribution).collect::<Checked<_>>()?;
            Ok(HitTrace { handle: self.handle(&hit.id)?, contributions })
        };
        Ok(ExplainAnswer { query, hits: answer.hits.into_iter().map(hit).collect::<Checked<_>>()? })
    }

    pub(crate) fn browse(&self, answer: tree::NodePage, limit: u32) -> Checked<BrowseAnswer> {
        count("nodes", answer.nodes.len(), limit as usize)?;
        if let Some(cursor) = &answer.next_cursor {
            text_size("nextCursor", cursor, limits::MAX_PROVIDER_CURSOR_BYTES)?;
        }
        let node = |node: tree::Node| {
            text_size("path", &node.path, limits::MAX_NODE_PATH_BYTES)?;
            Ok(BrowseNode {
                path: node.path,
                label: name("label", node.label)?,
                has_children: node.has_children,
                record: node.record_id.map(|id| self.handle(&id)).transpose()?,
            })
        };
        Ok(BrowseAnswer {
            nodes: answer.nodes.into_iter().map(node).collect::<Checked<_>>()?,
            next: answer.next_cursor,
        })
    }

    pub(crate) fn ran_job(&self, answer: extract::JobResult, asked: &str) -> Checked<JobAnswer> {
        count("records", answer.records.len(), limits::MAX_ITEMS)?;
        let JobAnswer { job, .. } = self.job(Some(answer.job), asked)?;
        Ok(JobAnswer { job, records: self.handles(&answer.records)?, usage: usages(answer.usage)? })
    }

    pub(crate) fn job(&self, answer: Option<wit::ExtractionJob>, asked: &str) -> Checked<JobAnswer> {
        if answer.as_ref().is_some_and(|found| found.provider_job_id != asked) {
            return bad("it answers another job than the one asked for");
        }
        let job = answer.map(job).transpose()?;
        Ok(JobAnswer { job, records: Vec::new(), usage: Vec::new() })
    }

    pub(crate) fn jobs(&self, answer: extract::JobPage, limit: u32) -> Checked<Vec<ExtractionJob>> {
        count("jobs", answer.jobs.len(), limit as usize)?;
        answer.jobs.into_iter().map(job).collect()
    }

    pub(crate) fn profile(&self, answer: summary::ProfileResponse) -> Checked<ProfileAnswer> {
        if let Some(summary) = &answer.summary {
            text_size("summary", summary, limits::MAX_SUMMARY_BYTES)?;
        }
        Ok(ProfileAnswer { summary: answer.summary, usage: usages(answer.usage)? })
    }

    pub(crate) fn decided(
        &self,
        answer: Option<wit::Snippet>,
        asked: &str,
        company: &CompanyId,
    ) -> Checked<Option<Snippet>> {
        if answer.as_ref().is_some_and(|snippet| snippet.id != asked) {
            return bad("it answers another record than the one that was decided about");
        }
        answer.map(|snippet| self.snippet(snippet, company)).transpose()
    }

    pub(crate) fn exported(&self, answer: moved::Chunk) -> Checked<ChunkAnswer> {
        text_size("lines", &answer.lines, limits::MAX_TRANSFER_BYTES)?;
        if !answer.lines.is_empty() && !answer.lines.ends_with('\n') {
            return bad("its last line is not ended by a line feed");
        }
        for (number, line) in answer.lines.lines().enumerate() {
            if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(line) {
                return bad(format!("line {} of a chunk is not JSON: {error}", number + 1));
            }
        }
        if let Some(cursor) = &answer.next_cursor {
            text_size("nextCursor", cursor, limits::MAX_PROVIDER_CURSOR_BYTES)?;
        }
        Ok(ChunkAnswer { lines: answer.lines, next: answer.next_cursor })
    }

    pub(crate) fn imported(&self, answer: &moved::ImportReport, lines: usize) -> Checked<ImportAnswer> {
        let (imported, unchanged) = (answer.imported, answer.unchanged);
        if imported as usize + unchanged as usize > lines {
            return bad(format!("it says that it took {imported} and knew {unchanged} of {lines} lines"));
        }
        Ok(ImportAnswer { imported, unchanged })
    }
}

//! `extracts` does what the text of a capture says: it leaves jobs of all kinds, charges money,
//! fails for a while, and stores candidates with a confidence. It counts every call that had an
//! effect, so that a test sees repetitions.
//!
//! A capture's first word says what: `job`, `elsewhere`, `metered`, `paid`, `flaky`, anything else
//! is a record. A text that is JSON is a record with `text`, and the rest of it is its metadata.

use memhost_sdk::storage::{Batch, Collection};
use memhost_sdk::{Extraction, NoConfig, Provider, types::*};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A record as it is stored.
#[derive(Clone, Serialize, Deserialize)]
struct Record {
    text: String,
    metadata: Option<String>,
}

/// A job: its text, how often it was run, and its status.
#[derive(Clone, Serialize, Deserialize)]
struct Job {
    text: String,
    runs: u32,
    status: String,
}

/// The provider.
pub struct Extracts {
    records: Collection<Record>,
    jobs: Collection<Job>,
    counts: Collection<u32>,
}

impl Extracts {
    fn count(&self, name: &str) -> Result<u32, Error> {
        Ok(self.counts.get(name)?.unwrap_or(0))
    }

    /// Waits until a record contains the word: ten seconds at most, so that a test that never
    /// writes it fails.
    fn wait_for(&self, word: &str) -> Result<(), Error> {
        for _ in 0..1_000 {
            if self.all()?.iter().any(|(_, record)| record.text.contains(word)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Ok(())
    }

    /// Writes a record and counts that, in one step.
    fn keep(&self, id: &str, text: &str, counted: &str) -> Result<(), Error> {
        let json: Option<Value> = serde_json::from_str(text).ok().filter(Value::is_object);
        let record = match json {
            Some(mut json) => {
                let text = json["text"].as_str().unwrap_or_default().to_owned();
                if let Some(members) = json.as_object_mut() {
                    members.remove("text");
                }
                Record { text, metadata: Some(json.to_string()) }
            }
            None => Record { text: text.to_owned(), metadata: None },
        };
        let mut batch = Batch::new();
        batch.put(&self.records, id, &record)?;
        batch.put(&self.counts, counted, &(self.count(counted)? + 1))?;
        Ok(batch.apply()?)
    }

    fn all(&self) -> Result<Vec<(String, Record)>, Error> {
        let entry = |entry: Result<(Vec<u8>, Record), _>| {
            let (key, record) = entry?;
            Ok((String::from_utf8_lossy(&key).into_owned(), record))
        };
        self.records.iter("").map(entry).collect()
    }
}

fn snippet((id, record): (String, Record)) -> Snippet {
    Snippet { metadata: record.metadata, ..Snippet::new(id, record.text) }
}

fn shown(id: &str, status: &str) -> ExtractionJob {
    ExtractionJob {
        provider_job_id: id.to_owned(),
        status: match status {
            "running" => JobStatus::Running,
            "succeeded" => JobStatus::Succeeded,
            "failed" | "hopeless" => JobStatus::Failed,
            "cancelled" => JobStatus::Cancelled,
            _ => JobStatus::Queued,
        },
        record_count: None,
        hook_kind: None,
        source: None,
        error: matches!(status, "failed" | "hopeless")
            .then(|| "the material makes no sense".to_owned()),
        is_retryable: matches!(status, "failed" | "cancelled"),
        submitted_at: None,
        started_at: None,
        finished_at: None,
    }
}

fn charge(microcents: u64) -> Usage {
    Usage {
        provider: "expensive".to_owned(),
        biller: Some("biller".to_owned()),
        model: Some("model-1".to_owned()),
        billing_type: Some(BillingType::MeteredApi),
        attribution_mode: Some(AttributionMode::BilledDirectly),
        input_tokens: Some(100),
        cached_input_tokens: Some(10),
        output_tokens: Some(20),
        embedding_tokens: Some(5),
        cost_microcents: Some(microcents),
        latency_ms: None,
        details: None,
    }
}

fn number(text: &str) -> u64 {
    text.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(1)
}

fn unavailable(message: &str) -> Error {
    Error::Unavailable(RetryLater { message: message.to_owned(), retry_after_ms: None })
}

impl Provider for Extracts {
    type Config = NoConfig;

    fn describe() -> Description {
        let http =
            HttpPermission { origin: "https://api.example.com".to_owned(), methods: Vec::new() };
        let mut description = Description::new("extracts", "1.0.0", "Does what captures say")
            .require(Permission::Storage(64 << 20), "Records and jobs are stored in it")
            .prefer(Permission::Http(http), "Where it might send something");
        description.capabilities.async_extraction = true;
        description.max_concurrency = 4;
        description
    }

    fn open(_: NoConfig) -> Result<Self, Error> {
        Ok(Self {
            records: Collection::new("records"),
            jobs: Collection::new("jobs"),
            counts: Collection::new("counts"),
        })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        let id = request.operation_id;
        let text = request.payload.text.unwrap_or_default();
        let calls = format!("calls/{id}");
        match text.split_whitespace().next().unwrap_or_default() {
            kind @ ("job" | "elsewhere") => {
                let job_id = format!("job-{id}");
                let status = if kind == "job" { "queued" } else { "running" };
                let mut batch = Batch::new();
                if self.jobs.get(&job_id)?.is_none() {
                    batch.put(
                        &self.jobs,
                        &job_id,
                        &Job { text: text.clone(), runs: 0, status: status.to_owned() },
                    )?;
                }
                batch.put(&self.counts, &calls, &(self.count(&calls)? + 1))?;
                batch.apply()?;
                Ok(CaptureResponse {
                    records: Vec::new(),
                    jobs: vec![shown(&job_id, status)],
                    usage: Vec::new(),
                })
            }
            // `metered CENTS after WORD` ends once a record contains the word.
            "metered" => {
                if let Some((_, word)) = text.split_once(" after ") {
                    self.wait_for(word)?;
                }
                let usage = vec![charge(number(&text) * 1_000_000)];
                Ok(CaptureResponse { records: Vec::new(), jobs: Vec::new(), usage })
            }
            // A record that costs something, with a line in the log.
            "paid" => {
                eprintln!("one record was charged");
                self.keep(&id, &text, &calls)?;
                let usage = vec![charge(number(&text) * 1_000_000)];
                Ok(CaptureResponse { records: vec![id], jobs: Vec::new(), usage })
            }
            "included" => {
                let usage = Usage {
                    attribution_mode: Some(AttributionMode::IncludedInRun),
                    ..charge(1_000_000)
                };
                Ok(CaptureResponse { records: Vec::new(), jobs: Vec::new(), usage: vec![usage] })
            }
            "flaky" => {
                // A repeated capture has the same id, so its tries can be counted.
                let tries = self.count(&format!("tries/{id}"))? + 1;
                self.counts.put(format!("tries/{id}"), &tries)?;
                if u64::from(tries) <= number(&text) {
                    return Err(unavailable("not yet"));
                }
                self.keep(&id, &text, &calls)?;
                Ok(vec![id].into())
            }
            _ => {
                self.keep(&id, &text, &calls)?;
                Ok(vec![id].into())
            }
        }
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        let mut ids = Vec::new();
        for (n, record) in request.records.into_iter().enumerate() {
            let id = record.id.unwrap_or_else(|| format!("{}-{n}", request.operation_id));
            // The answer has no field for the job, so the host finds it in the list.
            if record.text.starts_with("job later") {
                let job = Job { text: record.text.clone(), runs: 0, status: "queued".to_owned() };
                self.jobs.put(format!("job-{id}"), &job)?;
            }
            self.records.put(&id, &Record { text: record.text, metadata: record.metadata })?;
            ids.push(id);
        }
        Ok(ids.into())
    }

    /// `count PREFIX` answers the highest count under a prefix and their sum; `await WORD` answers
    /// once a record contains the word; `slowly WORDS` reads its storage after a tenth of a second.
    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        if let Some(prefix) = request.query.strip_prefix("count ") {
            let counts: Vec<u32> =
                self.counts.iter(prefix).map(|entry| Ok(entry?.1)).collect::<Result<_, Error>>()?;
            let text =
                format!("{} {}", counts.iter().max().unwrap_or(&0), counts.iter().sum::<u32>());
            return Ok(vec![Snippet::new("count".to_owned(), text)].into());
        }
        if let Some(word) = request.query.strip_prefix("await ") {
            self.wait_for(word)?;
        }
        if request.query.starts_with("slowly ") {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let mut found = self.all()?;
        found.retain(|(_, record)| request.query.split(' ').any(|word| record.text.contains(word)));
        found.truncate(request.top_k as usize);
        Ok(found.into_iter().map(snippet).collect::<Vec<_>>().into())
    }

    /// A record `list in circles` makes a list whose pages lead to each other, and `list on the
    /// spot` one whose last page leads to itself.
    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        let mut rest = self.all()?;
        let says = |what: &str| rest.iter().any(|(_, record)| record.text == what);
        let is_first = request.cursor.as_deref() != Some("a");
        let next = match () {
            () if says("list in circles") => Some(if is_first { "a" } else { "b" }),
            () if says("list on the spot") => Some("a"),
            () => None,
        };
        if let Some(next) = next {
            let items = rest.into_iter().take(request.limit as usize).map(snippet).collect();
            return Ok(ListPage {
                items,
                continuation: Continuation::Next(next.to_owned()),
                ..ListPage::default()
            });
        }
        rest.retain(|(id, _)| request.cursor.as_ref().is_none_or(|last| id > last));
        let has_more = rest.len() > request.limit as usize;
        rest.truncate(request.limit as usize);
        let continuation = match rest.last() {
            Some((last, _)) if has_more => Continuation::Next(last.clone()),
            _ => Continuation::End,
        };
        Ok(ListPage {
            items: rest.into_iter().map(snippet).collect(),
            continuation,
            ..ListPage::default()
        })
    }

    fn get_record(&mut self, id: RecordId, _: Scope) -> Result<GetResponse, Error> {
        let record = self.records.get(&id)?;
        Ok(record.map(|record| snippet((id, record))).into())
    }

    /// A record that begins with `indelible` stays, as if it were only hidden.
    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        let mut outcomes = Vec::new();
        for id in request.ids {
            let effect = match self.records.get(&id)? {
                Some(record) if record.text.starts_with("indelible") => ForgetEffect::Soft,
                Some(_) => ForgetEffect::Hard,
                None => ForgetEffect::NotFound,
            };
            if effect == ForgetEffect::Hard {
                self.records.delete(&id)?;
            }
            outcomes.push(ForgetOutcome { id, effect });
        }
        Ok(ForgetResponse { outcomes, usage: Vec::new() })
    }
}

impl Extraction for Extracts {
    /// `job slices N` takes N calls, `job unavailable N` cannot be run N times first, `job stumbles
    /// N` fails N times first, `job fails` always fails, `job hopeless` fails and can never be
    /// retried, `job await WORD` ends once a record contains the word. The record and the end of
    /// the job are one batch.
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        let Some(mut job) = self.jobs.get(&id)? else {
            return Err(Error::NotFound(format!("there is no job {id}")));
        };
        job.runs += 1;
        let (kind, amount) =
            (job.text.split_whitespace().nth(1).unwrap_or_default().to_owned(), number(&job.text));
        let result = |status: &str, records: Vec<String>| JobResult {
            job: shown(&id, status),
            records,
            usage: Vec::new(),
        };
        match kind.as_str() {
            "slices" if u64::from(job.runs) < amount => {
                self.jobs.put(&id, &job)?;
                return Ok(result("running", Vec::new()));
            }
            "unavailable" if u64::from(job.runs) <= amount => {
                self.jobs.put(&id, &job)?;
                return Err(unavailable("the model rests"));
            }
            "stumbles" if u64::from(job.runs) > amount => {}
            "fails" | "stumbles" | "hopeless" => {
                job.status = if kind == "hopeless" { "hopeless" } else { "failed" }.to_owned();
                self.jobs.put(&id, &job)?;
                return Ok(result(&job.status, Vec::new()));
            }
            "await" => self.wait_for(job.text.split_whitespace().nth(2).unwrap_or_default())?,
            _ => {}
        }
        job.status = "succeeded".to_owned();
        let (record, counted) = (format!("record-{id}"), format!("successes/{id}"));
        let mut batch = Batch::new();
        batch.put(&self.records, &record, &Record { text: job.text.clone(), metadata: None })?;
        batch.put(&self.jobs, &id, &job)?;
        batch.put(&self.counts, &counted, &(self.count(&counted)? + 1))?;
        batch.apply()?;
        Ok(result("succeeded", vec![record]))
    }

    /// A job that runs elsewhere has succeeded when it was asked about twice. It tells its record
    /// and what it used, also while it goes on, when it should not.
    fn get_job(&mut self, id: String) -> Result<Option<JobResult>, Error> {
        let Some(mut job) = self.jobs.get(&id)? else { return Ok(None) };
        let record = format!("record-{id}");
        let mut usage = Vec::new();
        if job.text.starts_with("elsewhere") {
            job.runs += 1;
            if job.runs >= 2 && job.status != "cancelled" {
                job.status = "succeeded".to_owned();
                self.records.put(&record, &Record { text: job.text.clone(), metadata: None })?;
            }
            self.jobs.put(&id, &job)?;
            usage.push(charge(7));
        }
        let records = if self.records.get(&record)?.is_some() { vec![record] } else { Vec::new() };
        Ok(Some(JobResult { job: shown(&id, &job.status), records, usage }))
    }

    fn list_jobs(
        &mut self,
        _: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<JobPage, Error> {
        let mut all = Vec::new();
        for entry in self.jobs.iter("") {
            let (key, job) = entry?;
            all.push((String::from_utf8_lossy(&key).into_owned(), job.status));
        }
        // Newest first: ids begin with the operation's, which is in the order of time.
        all.reverse();
        all.retain(|(id, _)| cursor.as_ref().is_none_or(|last| id < last));
        let has_more = all.len() > limit as usize;
        all.truncate(limit as usize);
        let next_cursor = all.last().filter(|_| has_more).map(|(id, _)| id.clone());
        Ok(JobPage {
            jobs: all.iter().map(|(id, status)| shown(id, status)).collect(),
            next_cursor,
        })
    }

    /// The cancellation of `elsewhere cancel WORD` takes effect once a record contains the word.
    fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        let text = self.jobs.get(&id)?.map(|job| job.text).unwrap_or_default();
        if let Some(word) = text.strip_prefix("elsewhere cancel ") {
            self.wait_for(word)?;
        }
        let Some(job) = self.jobs.get(&id)? else { return Ok(shown(&id, "cancelled")) };
        // A cancellation may come late. A job that has ended does not change.
        if matches!(job.status.as_str(), "succeeded" | "failed" | "hopeless") {
            return Ok(shown(&id, &job.status));
        }
        self.jobs.put(&id, &Job { status: "cancelled".to_owned(), ..job })?;
        Ok(shown(&id, "cancelled"))
    }

    /// The next run counts on from the ones before: a job that fails `N` times succeeds when it is
    /// tried often enough.
    fn retry_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        let Some(mut job) = self.jobs.get(&id)? else {
            return Err(Error::NotFound(format!("there is no job {id}")));
        };
        if job.status == "hopeless" {
            return Err(Error::unsupported("this job cannot be tried again"));
        }
        if matches!(job.status.as_str(), "failed" | "cancelled") {
            job.status =
                if job.text.starts_with("elsewhere") { "running" } else { "queued" }.to_owned();
            self.jobs.put(&id, &job)?;
        }
        Ok(shown(&id, &job.status))
    }
}

memhost_sdk::export!(Extracts);
memhost_sdk::export_extraction!(Extracts);

//! The provider: captures, and what the SDK makes of supermemory's routes.

use std::time::SystemTime;

use memhost_sdk::jobs::Job;
use memhost_sdk::remote::{Adapter, Elsewhere, Records, Tag, Work, Writes, begun};
use memhost_sdk::{Erasure, Health, Profile, types::*};

use crate::api::Api;
use crate::config::Config;

/// The most bytes of a profile.
const PROFILE: usize = 60 << 10;

/// The provider of a binding.
#[derive(Debug)]
pub struct Supermemory {
    records: Records<Api>,
}

impl Adapter for Supermemory {
    type Config = Config;
    type Service = Api;

    fn describe() -> Description {
        let base = Description::new("supermemory", env!("CARGO_PKG_VERSION"), "Keeps records in supermemory");
        Description {
            config_schema: Some(memhost_sdk::schema::of::<Config>()),
            capabilities: Capabilities { provider_managed_extraction: true, async_extraction: true },
            max_concurrency: 8,
            declarations: Declarations {
                // A record takes up to five requests, and a call has 64.
                max_upsert: Some(12),
                max_forget: Some(12),
                exceptions: vec![Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists],
                ..Declarations::default()
            },
            ..base
        }
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The memories are there")
        .require(Permission::Storage(64 << 20), "Notes what was written, and which scope a document is of")
        .require(Permission::Secret("SUPERMEMORY_API_KEY".to_owned()), "supermemory's key")
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { records: Records::new(Api::new(config)?) })
    }

    fn records(&self, scope: &Scope) -> &Records<Api> {
        self.records.service.belong_to(&scope.company_id);
        &self.records
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.records.service.config.extract.is_for(mode)
    }

    /// Gives a capture to supermemory as a document. A repeated one is the same document there.
    fn learn(&self, request: &CaptureRequest, text: &str, tag: &Tag) -> Result<CaptureResponse, Error> {
        let (api, key) = (&self.records(&request.scope).service, request.operation_id.as_str());
        let id = Writes::new("captures").once(key, false, || Ok(None), || api.learn(key, text, tag))?;
        begun(id, &request.scope)
    }
}

impl Elsewhere for Supermemory {
    fn ask(&self, job: &mut Job<Work>) -> Result<(), Error> {
        let (now, api) = (SystemTime::now(), &self.records(&job.work.scope).service);
        match api.document(&job.id)? {
            // It deletes what it cannot process, two minutes later.
            None => job.fail("supermemory does not have the document, or has it no more", now),
            Some(document) => match document.status.as_str() {
                "done" => {
                    job.records = api.made_of(&job.id)?;
                    job.succeed(now);
                }
                "failed" => job.fail("supermemory could not process the document", now),
                _ => job.go_on(now),
            },
        }
        Ok(())
    }
}

impl Profile for Supermemory {
    fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error> {
        let mut summary = String::new();
        for line in self.records(&scope).service.profile(&scope)? {
            if summary.len() + line.len() > PROFILE {
                break;
            }
            summary.push_str(&format!("- {line}\n"));
        }
        Ok(ProfileResponse { summary: (!summary.is_empty()).then_some(summary), usage: Vec::new() })
    }
}

impl Health for Supermemory {
    fn check_health(&mut self) -> Result<Report, Error> {
        let documents = self.records.service.ping()?;
        let summary = format!("supermemory answers at {}, {documents} documents", self.records.service.config.url);
        Ok(Report { summary })
    }
}

impl Erasure for Supermemory {
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        if request.scope != Scope::company(&request.scope.company_id) {
            return Err(Error::unsupported("supermemory forgets a whole company at once, and no part of it"));
        }
        self.records(&request.scope).service.delete_all()?;
        // It says that documents are gone for good, and nothing of memories that were hidden before.
        Ok(ForgetScopeResponse { extent: Extent::Soft, count: None, usage: Vec::new() })
    }
}

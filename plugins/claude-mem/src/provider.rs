//! The provider: its description, and captures that claude-mem extracts from.

use memhost_sdk::remote::{Adapter, Records, Tag, Writes, begun};
use memhost_sdk::{Health, types::*};

use crate::api::Api;
use crate::config::Config;

/// The provider of a binding.
#[derive(Debug)]
pub struct ClaudeMem {
    pub(crate) records: Records<Api>,
}

impl Adapter for ClaudeMem {
    type Config = Config;
    type Service = Api;

    fn describe() -> Description {
        let summary = "Keeps records as observations of claude-mem";
        Description {
            config_schema: Some(memhost_sdk::schema::of::<Config>()),
            capabilities: Capabilities { provider_managed_extraction: true, async_extraction: true },
            max_concurrency: 8,
            declarations: Declarations {
                // A record that is replaced takes up to six requests, and a call has 64.
                max_upsert: Some(10),
                max_forget: Some(10),
                exceptions: vec![Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists],
                ..Declarations::default()
            },
            ..Description::new("claude-mem", env!("CARGO_PKG_VERSION"), summary)
        }
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The observations are there")
        .require(
            Permission::Storage(64 << 20),
            "Notes what was written and which observation took the place of another",
        )
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { records: Records::new(Api::new(config)?) })
    }

    fn records(&self, scope: &Scope) -> &Records<Api> {
        self.records.service.belong_to(&scope.company_id);
        &self.records
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.records.service.config.infer.is_for(mode)
    }

    fn learn(&self, request: &CaptureRequest, text: &str, tag: &Tag) -> Result<CaptureResponse, Error> {
        let (api, key) = (&self.records(&request.scope).service, request.operation_id.as_str());
        let id = Api::session(key);
        let look = || Ok(api.use_of(&id)?.map(|_| id.clone()));
        let write = || api.observe(&id, &request.scope, text, tag).map(|()| id.clone());
        begun(Writes::new("captures").once(key, request.hook.is_some(), look, write)?, &request.scope)
    }
}

impl Health for ClaudeMem {
    fn check_health(&mut self) -> Result<Report, Error> {
        let version = self.records.service.version()?;
        Ok(Report { summary: format!("claude-mem {version} answers at {}", self.records.service.config.url) })
    }
}

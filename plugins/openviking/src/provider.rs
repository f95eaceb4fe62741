//! The provider: its description, and captures that OpenViking extracts from.

mod sessions;

use memhost_sdk::remote::{Adapter, Records, Tag, Writes, begun};
use memhost_sdk::{Erasure, Health, types::*};

use self::sessions::{messages, session};
use crate::api::{Api, ROOTS};
use crate::config::Config;
use crate::name::peer;

/// The provider of a binding.
#[derive(Debug)]
pub struct OpenViking {
    pub(crate) records: Records<Api>,
}

impl Adapter for OpenViking {
    type Config = Config;
    type Service = Api;

    fn describe() -> Description {
        let summary = "Keeps records as memories of a user of OpenViking";
        Description {
            config_schema: Some(memhost_sdk::schema::of::<Config>()),
            capabilities: Capabilities { provider_managed_extraction: true, async_extraction: true },
            max_concurrency: 8,
            declarations: Declarations {
                // Each record waits for the index. One that is forgotten takes four requests, and a call has 64.
                max_upsert: Some(5),
                max_forget: Some(15),
                exceptions: vec![Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists],
                ..Declarations::default()
            },
            ..Description::new("openviking", env!("CARGO_PKG_VERSION"), summary)
        }
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The memories are there")
        .require(Permission::Storage(64 << 20), "Notes what was written and which sessions OpenViking works on")
        .require(Permission::Secret("OPENVIKING_API_KEY".to_owned()), "The key of the user whose memories these are")
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { records: Records::new(Api::new(config)?) })
    }

    fn records(&self, _: &Scope) -> &Records<Api> {
        &self.records
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.records.service.config.infer.is_for(mode)
    }

    fn learn(&self, request: &CaptureRequest, text: &str, _: &Tag) -> Result<CaptureResponse, Error> {
        let too_long =
            || Error::unsupported("the names of company, agent, subject and namespace are too long together");
        let peer = peer(&request.scope).ok_or_else(too_long)?;
        let (api, key) = (&self.records.service, request.operation_id.as_str());
        let session = session(key);
        let look = || Ok(api.task(&session)?.map(|_| session.clone()));
        let write = || api.converse(&session, &messages(request, text, &peer)).map(|()| session.clone());
        begun(Writes::new("captures").once(key, request.hook.is_some(), look, write)?, &request.scope)
    }
}

impl Health for OpenViking {
    fn check_health(&mut self) -> Result<Report, Error> {
        let user = self.records.service.user()?;
        Ok(Report { summary: format!("OpenViking answers at {}, user {user}", self.records.service.config.url) })
    }
}

impl Erasure for OpenViking {
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        if request.scope != Scope::company(&request.scope.company_id) {
            return Err(Error::unsupported("OpenViking forgets a whole user at once, and no part of one"));
        }
        for directory in ROOTS.iter().chain(&["sessions"]) {
            self.records.service.remove(directory, true)?;
        }
        Ok(ForgetScopeResponse { extent: Extent::Hard, count: None, usage: Vec::new() })
    }
}

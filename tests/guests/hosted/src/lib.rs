//! `hosted` behaves like a provider in front of somebody else's service: its address is in its
//! configuration, it takes few records at once, it neither filters nor partitions, and it declares
//! all that. It answers what the import `call` says, and fails as the query or the configuration
//! tells it to.

#[path = "../../stamped/src/send.rs"]
mod send;

use memhost_sdk::storage::Collection;
use memhost_sdk::types::*;
use memhost_sdk::{Erasure, Health, NoConfig, Provider, call};
use serde::Deserialize;
use well_behaved::Reference;

const MOST_WRITTEN: usize = 3;
const MOST_FORGOTTEN: usize = 2;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    url: String,
    /// What the service says of the credentials: `refused`, or anything else.
    key: String,
    /// Records are not forgotten one by one.
    forgets_scopes_only: bool,
}

struct Hosted {
    reference: Reference,
    config: Config,
    calls: Collection<u64>,
}

fn everywhere(scope: Scope) -> Scope {
    Scope { agent_id: None, subject_id: None, namespace: None, ..scope }
}

impl Hosted {
    fn count(&self, what: &str) -> Result<(), Error> {
        let before = self.calls.get(what)?.unwrap_or_default();
        Ok(self.calls.put(what, &(before + 1))?)
    }
}

impl Provider for Hosted {
    type Config = Config;

    fn describe() -> Description {
        let properties = serde_json::json!({
            "url": {"type": "string"}, "key": {"type": "string"},
            "forgets_scopes_only": {"type": "boolean"},
        });
        let schema = serde_json::json!({
            "type": "object", "properties": properties, "additionalProperties": false,
        });
        let declarations = Declarations {
            max_upsert: Some(MOST_WRITTEN as u32),
            max_forget: Some(MOST_FORGOTTEN as u32),
            left_to_host: vec![
                HostWork::MetadataFilter,
                HostWork::AgentPartition,
                HostWork::SubjectPartition,
                HostWork::NamespacePartition,
            ],
            exceptions: vec![
                Exception::AllOrNoneUpserts,
                Exception::ExactlyOnceLists,
                Exception::Other("of a newer contract".to_owned()),
            ],
        };
        let description = Description::new(
            "hosted",
            env!("CARGO_PKG_VERSION"),
            "Stands for somebody else's service",
        );
        Description {
            config_schema: Some(schema.to_string()),
            max_concurrency: 4,
            declarations,
            ..description
        }
        .require(Permission::Storage(64 << 20), "Records are stored in it")
        .prefer(Permission::Http(HttpPermission::to("{{config:/url}}")), "The service is there")
        .prefer(Permission::Other("telepathy".to_owned()), "For what comes")
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self {
            reference: Reference::open(NoConfig {})?,
            config,
            calls: Collection::new("calls"),
        })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        self.reference.capture(CaptureRequest { mode: CaptureMode::CaptureRecord, ..request })
    }

    /// Refuses a record `refuse`, after those before it were written.
    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        if request.records.len() > MOST_WRITTEN {
            return Err(Error::invalid("records", format!("has more than {MOST_WRITTEN}")));
        }
        self.count("upserts")?;
        if request.records.iter().any(|record| record.text == "refuse") {
            return Err(Error::invalid("records", "has one that is refused"));
        }
        self.reference.upsert_records(request)
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        if request.metadata_filter.is_some() {
            return Err(Error::internal("a filter came all the same"));
        }
        let told = |text: String| Ok(vec![Snippet::new("told", text)].into());
        let (what, rest) = request.query.split_once(' ').unwrap_or((&request.query, ""));
        match what {
            "remaining" => return told(call::remaining().as_millis().to_string()),
            "grants" => return told(format!("{:?}", call::grants())),
            "limit" => return told(format!("{:?}", call::limit(rest))),
            "calls" => return told(format!("{}", self.calls.get(rest)?.unwrap_or_default())),
            "unauthorized" => return Err(Error::Unauthorized("the key was revoked".to_owned())),
            "unavailable" => return Err(Error::unavailable("the service rests", None)),
            _ => {}
        }
        if let Ok(send) = serde_json::from_str::<send::Send>(&request.query) {
            return told(send.run());
        }
        self.reference.query(QueryRequest { scope: everywhere(request.scope), ..request })
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        if request.metadata_filter.is_some() {
            return Err(Error::internal("a filter came all the same"));
        }
        self.reference.list_records(ListRequest { scope: everywhere(request.scope), ..request })
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        self.reference.get_record(id, everywhere(scope))
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        if self.config.forgets_scopes_only || request.ids.len() > MOST_FORGOTTEN {
            return Err(Error::unsupported("not so many at once"));
        }
        self.count("forgets")?;
        self.reference.forget(ForgetRequest { scope: everywhere(request.scope), ..request })
    }
}

impl Health for Hosted {
    fn check_health(&mut self) -> Result<Report, Error> {
        self.count("health")?;
        match self.config.key.as_str() {
            "refused" => Err(Error::Unauthorized("the service does not know this key".to_owned())),
            _ => Ok(Report { summary: format!("the service at `{}` answers", self.config.url) }),
        }
    }
}

impl Erasure for Hosted {
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        if request.scope.agent_id.is_some() {
            return Err(Error::unsupported("only everything at once"));
        }
        self.reference.forget_scope(request)
    }
}

memhost_sdk::export!(Hosted);
memhost_sdk::export_health!(Hosted);
memhost_sdk::export_erasure!(Hosted);

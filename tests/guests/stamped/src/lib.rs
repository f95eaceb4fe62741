//! `stamped` reads its provider key, its version and its behaviour from a block of bytes in itself.
//! The test suite overwrites the block, so that one build makes any number of providers and
//! versions.

mod send;

use memhost_sdk::storage::Collection;
use memhost_sdk::{Migration, NoConfig, Provider, types::*};
use serde::Deserialize;

/// The size of the block. A shorter stamp is padded with spaces.
const STAMP_BYTES: usize = 512;

static STAMP: [u8; STAMP_BYTES] = {
    let text = br#"{"stamp":"memhost","key":"stamped","version":"1.0.0"}"#;
    let mut block = [b' '; STAMP_BYTES];
    let mut at = 0;
    while at < text.len() {
        block[at] = text[at];
        at += 1;
    }
    block
};

#[derive(Deserialize, Default)]
#[serde(default)]
struct Stamp {
    key: String,
    version: String,
    /// Every capture and query panics.
    traps: bool,
    /// A migration writes and then fails.
    migration_fails: bool,
    /// Bytes of storage that it asks for; 0 for nothing.
    storage: u64,
    /// An origin that it asks for.
    origin: String,
    /// A secret that it asks for.
    secret: String,
    /// It asks for the exact time.
    clock: bool,
}

/// Keeps the compiler from using the block's value.
fn stamp() -> Stamp {
    serde_json::from_slice(std::hint::black_box(&STAMP).trim_ascii()).unwrap_or_default()
}

struct Stamped(Stamp);

/// The versions that wrote, one key for each.
fn marks() -> Collection<String> {
    Collection::new("marks")
}

impl Provider for Stamped {
    type Config = NoConfig;

    fn describe() -> Description {
        let stamp = stamp();
        let mut permissions = Vec::new();
        if stamp.storage > 0 {
            permissions.push(PermissionRequest {
                permission: Permission::Storage(stamp.storage),
                reason: "to count".to_owned(),
                optional: true,
            });
        }
        if !stamp.origin.is_empty() {
            permissions.push(PermissionRequest {
                permission: Permission::Http(HttpPermission {
                    origin: stamp.origin,
                    methods: Vec::new(),
                }),
                reason: "to ask somebody else".to_owned(),
                optional: true,
            });
        }
        if !stamp.secret.is_empty() {
            permissions.push(PermissionRequest {
                permission: Permission::Secret(stamp.secret),
                reason: "to be let in".to_owned(),
                optional: true,
            });
        }
        if stamp.clock {
            permissions.push(PermissionRequest {
                permission: Permission::Clock,
                reason: "to be exact".to_owned(),
                optional: true,
            });
        }
        let description = Description::new(&stamp.key, &stamp.version, "Whatever its stamp says");
        Description { max_concurrency: 8, permissions, ..description }
    }
    fn open(_: NoConfig) -> Result<Self, Error> {
        Ok(Self(stamp()))
    }
    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        assert!(!self.0.traps, "as the stamp says");
        if self.0.storage > 0 {
            marks().put(&request.operation_id, &self.0.version)?;
        }
        Ok(vec![request.operation_id].into())
    }
    fn upsert_records(&mut self, _: UpsertRequest) -> Result<UpsertResponse, Error> {
        Err(Error::unsupported("captures only"))
    }
    /// One snippet: its id is the version, its text all marks with the versions that wrote them, or
    /// the result of the request in the query.
    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        assert!(!self.0.traps, "as the stamp says");
        if request.query == "time" {
            let since = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap_or_default();
            return Ok(vec![Snippet::new("time", since.as_nanos().to_string())].into());
        }
        if let Ok(send) = serde_json::from_str::<send::Send>(&request.query) {
            return Ok(vec![Snippet::new("sent", send.run())].into());
        }
        let mut text = format!("version {}", self.0.version);
        if self.0.storage > 0 {
            for mark in marks().iter("") {
                let (id, version) = mark?;
                text.push_str(&format!("\n{} {version}", String::from_utf8_lossy(&id)));
            }
        }
        Ok(vec![Snippet { score: Score::Rank(1.0), ..Snippet::new(self.0.version.as_str(), text) }]
            .into())
    }
    fn list_records(&mut self, _: ListRequest) -> Result<ListPage, Error> {
        Ok(ListPage::default())
    }
    fn get_record(&mut self, _: RecordId, _: Scope) -> Result<GetResponse, Error> {
        Ok(GetResponse::default())
    }
    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        Ok(ForgetResponse::all(request.ids, ForgetEffect::NotFound))
    }
}

impl Migration for Stamped {
    /// Writes its own version over every mark.
    fn migrate(&mut self, from_version: &str) -> Result<(), Error> {
        if self.0.storage == 0 {
            return Ok(());
        }
        let ids: Result<Vec<_>, _> = marks().iter("").map(|mark| mark.map(|(id, _)| id)).collect();
        for id in ids? {
            marks().put(&id, &format!("{} from {from_version}", self.0.version))?;
        }
        if self.0.migration_fails { Err(Error::internal("as the stamp says")) } else { Ok(()) }
    }
}

memhost_sdk::export!(Stamped);
memhost_sdk::export_migration!(Stamped);

//! What a provider says of itself, what it asks for, and what a binding grants it.

use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};

use ipnet::IpNet;

use super::{JsonObject, Origin, ProviderKey};

mod asked;
mod declarations;

pub use asked::{AskedOrigin, Unresolved};
pub use declarations::{Declarations, Exception, HostWork};

/// The checked answer of a provider's `describe`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderDescription {
    /// Stable across versions; the first half of every handle.
    pub provider_key: ProviderKey,
    /// For people.
    pub name: String,
    /// Orders its builds.
    pub version: Version,
    /// For people, one sentence.
    pub summary: String,
    /// JSON Schema of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<serde_json::Value>,
    /// The plan's capability flags. Those that an exported interface proves are set by the host.
    pub capabilities: ProviderCapabilities,
    /// How many instances may serve one binding at once, from 1.
    pub max_concurrency: u32,
    /// Its permission requests.
    pub permissions: Vec<PermissionRequest>,
    /// Its declarations.
    #[serde(default)]
    pub declarations: Declarations,
}

/// The plan's `MemoryAdapterCapabilities`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderCapabilities {
    /// Exports `profile`.
    pub profile: bool,
    /// Exports `correction`.
    pub correction: bool,
    /// Takes payloads that are not text. The contract has no such payloads, so that it is always
    /// false.
    pub multimodal: bool,
    /// Makes its own records out of what is captured.
    pub provider_managed_extraction: bool,
    /// Answers captures with jobs.
    pub async_extraction: bool,
    /// Exports `browse`.
    pub provider_native_browse: bool,
}

/// Something outside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum Permission {
    /// The `storage` import, with this many bytes in total.
    Storage(u64),
    /// A private directory, with this many bytes in total.
    Directory(u64),
    /// The `embeddings` import.
    Embeddings,
    /// Outgoing HTTP to one origin.
    Http(HttpPermission),
    /// A secret of this name.
    Secret(String),
    /// The exact time.
    Clock,
    /// Something of a newer contract. It is never granted.
    Other(String),
}

/// Outgoing HTTP to one origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpPermission {
    /// Where. `{{config:/pointer}}` in it is a text of the binding's configuration.
    pub origin: AskedOrigin,
    /// Empty: all methods.
    pub methods: Vec<String>,
}

/// A permission request of a provider, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// The requested permission.
    pub permission: Permission,
    /// Why, for the person who decides.
    pub reason: String,
    /// Whether it also works without.
    pub optional: bool,
}

impl PermissionRequest {
    /// The same for a binding with this configuration: an origin that comes from it is resolved.
    /// One that it does not give stays as it is, and nothing covers it.
    #[must_use]
    pub fn resolved(&self, config: &JsonObject) -> Self {
        let mut request = self.clone();
        if let Permission::Http(http) = &mut request.permission
            && let Ok(origin) = http.origin.resolve(config)
        {
            http.origin = origin.into();
        }
        request
    }
}

impl Permission {
    /// Whether a decision about this one covers the other, too.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Storage(reviewed), Self::Storage(asked))
            | (Self::Directory(reviewed), Self::Directory(asked)) => asked <= reviewed,
            (Self::Http(reviewed), Self::Http(asked)) => {
                // No method means every one of them.
                let all = reviewed.methods.is_empty();
                let some = !asked.methods.is_empty()
                    && asked.methods.iter().all(|m| reviewed.methods.contains(m));
                reviewed.origin == asked.origin && (all || some)
            }
            (reviewed, asked) => reviewed == asked,
        }
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Storage(bytes) => write!(f, "storage of {bytes} bytes"),
            Self::Directory(bytes) => write!(f, "a directory of {bytes} bytes"),
            Self::Embeddings => write!(f, "embeddings"),
            Self::Http(http) if http.methods.is_empty() => write!(f, "HTTP to {}", http.origin),
            Self::Http(http) => write!(f, "HTTP {} to {}", http.methods.join(", "), http.origin),
            Self::Secret(name) => write!(f, "the secret `{name}`"),
            Self::Clock => write!(f, "the exact time"),
            Self::Other(name) => write!(f, "`{name}`, which this host does not know"),
        }
    }
}

/// The requested permissions that no person has decided about.
pub fn unreviewed<'a>(
    reviewed: &[Permission],
    asked: &'a [PermissionRequest],
) -> Vec<&'a PermissionRequest> {
    let decided = |request: &&PermissionRequest| {
        reviewed.iter().any(|known| known.covers(&request.permission))
    };
    asked.iter().filter(|request| !decided(request)).collect()
}

/// What one binding's provider may reach. The default is nothing. Holds only as far as the provider
/// asks for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Grants {
    /// Bytes of storage; 0: the import is denied.
    pub storage_bytes: u64,
    /// Bytes of the private directory; 0: there is none.
    pub directory_bytes: u64,
    /// Whether texts may be embedded.
    pub embeddings: bool,
    /// Where HTTP may go.
    #[schemars(transform = super::schema::few)]
    pub http: Vec<HttpGrant>,
    /// Secrets that may be put into requests, by name.
    #[schemars(transform = super::schema::secret_names)]
    pub secrets: Vec<String>,
    /// The exact time, instead of steps of 100 milliseconds.
    pub clock: bool,
}

/// Outgoing HTTP to one origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpGrant {
    /// Scheme, host and port, such as `https://api.example.com`; `https://*.example.com` for every
    /// name below.
    pub origin: Origin,
    /// Empty: all methods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = super::schema::methods)]
    pub methods: Vec<String>,
    /// Addresses that are not public and may be connected to all the same, such as `10.0.0.0/8`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>", transform = super::schema::ip_ranges)]
    pub private_ranges: Vec<IpNet>,
}

impl HttpGrant {
    /// What is left of this grant where a provider asks for so much. `None` if it does not ask for
    /// the origin.
    fn within(&self, asked: &HttpPermission) -> Option<Self> {
        let methods = match (self.methods.as_slice(), asked.methods.as_slice()) {
            ([], asked) => asked.to_vec(),
            (granted, []) => granted.to_vec(),
            (granted, asked) => {
                granted.iter().filter(|method| asked.contains(method)).cloned().collect()
            }
        };
        // No method in the list would mean all of them.
        let is_empty = methods.is_empty() && !(self.methods.is_empty() && asked.methods.is_empty());
        let wanted = asked.origin.fixed()?;
        let origin = [(wanted, &self.origin), (&self.origin, wanted)]
            .into_iter()
            .find_map(|(wide, narrow)| wide.includes(narrow).then(|| narrow.clone()));
        origin.filter(|_| !is_empty).map(|origin| Self {
            origin,
            methods,
            private_ranges: self.private_ranges.clone(),
        })
    }
}

impl Grants {
    /// Grants for exactly these requests. An origin from a configuration is left out until it is
    /// resolved.
    pub fn all_of(requests: &[PermissionRequest]) -> Self {
        let mut grants = Self::default();
        for request in requests {
            match &request.permission {
                Permission::Storage(bytes) => {
                    grants.storage_bytes = grants.storage_bytes.max(*bytes);
                }
                Permission::Directory(bytes) => {
                    grants.directory_bytes = grants.directory_bytes.max(*bytes);
                }
                Permission::Embeddings => grants.embeddings = true,
                Permission::Http(http) => {
                    let granted = http.origin.fixed().map(|origin| HttpGrant {
                        origin: origin.clone(),
                        methods: http.methods.clone(),
                        private_ranges: Vec::new(),
                    });
                    grants.http.extend(granted);
                }
                Permission::Secret(name) => grants.secrets.push(name.clone()),
                Permission::Clock => grants.clock = true,
                Permission::Other(_) => {}
            }
        }
        grants
    }

    /// Whether this grants nothing that the other does not.
    pub fn is_within(&self, other: &Self) -> bool {
        self.storage_bytes <= other.storage_bytes
            && self.directory_bytes <= other.directory_bytes
            && (!self.embeddings || other.embeddings)
            && (!self.clock || other.clock)
            && self.http.iter().all(|grant| other.http.contains(grant))
            && self.secrets.iter().all(|name| other.secrets.contains(name))
    }

    /// The required requests without any grant.
    pub fn missing<'a>(
        &'a self,
        requests: &'a [PermissionRequest],
    ) -> impl Iterator<Item = &'a PermissionRequest> {
        let is_granted = |request: &PermissionRequest| {
            self.effective(std::slice::from_ref(request)) != Self::default()
        };
        requests.iter().filter(move |request| !request.optional && !is_granted(request))
    }

    /// The first origin here that is in none of the requests and was not granted before: nothing
    /// would ever go there.
    pub fn unasked_origin(
        &self,
        requests: &[PermissionRequest],
        before: &Self,
    ) -> Option<(usize, &HttpGrant)> {
        let is_asked = |grant: &HttpGrant| {
            let http = requests.iter().filter_map(|request| match &request.permission {
                Permission::Http(http) => http.origin.fixed(),
                _ => None,
            });
            http.into_iter()
                .any(|asked| asked.includes(&grant.origin) || grant.origin.includes(asked))
        };
        let was_granted =
            |grant: &HttpGrant| before.http.iter().any(|known| known.origin == grant.origin);
        self.http.iter().enumerate().find(|(_, grant)| !is_asked(grant) && !was_granted(grant))
    }

    /// The grants that are also requested: a provider gets nothing that it did not request.
    #[must_use]
    pub fn effective(&self, requests: &[PermissionRequest]) -> Self {
        let asked = Self::all_of(requests);
        let is_asked = |request: &PermissionRequest| match &request.permission {
            Permission::Http(http) => Some(http.clone()),
            _ => None,
        };
        let asked_http: Vec<HttpPermission> = requests.iter().filter_map(is_asked).collect();
        let http = self
            .http
            .iter()
            .flat_map(|grant| asked_http.iter().filter_map(|asked| grant.within(asked)));
        Self {
            storage_bytes: if asked.storage_bytes > 0 { self.storage_bytes } else { 0 },
            directory_bytes: if asked.directory_bytes > 0 { self.directory_bytes } else { 0 },
            embeddings: self.embeddings && asked.embeddings,
            clock: self.clock && asked.clock,
            http: http.collect(),
            secrets: self
                .secrets
                .iter()
                .filter(|name| asked.secrets.contains(name))
                .cloned()
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(permission: Permission) -> PermissionRequest {
        PermissionRequest { permission, reason: String::new(), optional: true }
    }

    #[test]
    fn only_what_goes_beyond_the_review_is_unreviewed() {
        let http = |methods: &[&str]| {
            let methods = methods.iter().map(|method| (*method).to_owned()).collect();
            Permission::Http(HttpPermission {
                origin: "https://a.example".parse().unwrap(),
                methods,
            })
        };
        let reviewed = [Permission::Storage(100), http(&["GET", "POST"])];
        let left = |asked: Permission| unreviewed(&reviewed, &[asks(asked)]).len();
        assert_eq!(left(Permission::Storage(100)), 0);
        assert_eq!(left(Permission::Storage(101)), 1);
        assert_eq!(left(Permission::Directory(1)), 1);
        assert_eq!(left(http(&["GET"])), 0);
        assert_eq!(left(http(&["DELETE"])), 1);
        assert_eq!(left(http(&[])), 1, "every method is more than two");
    }

    #[test]
    fn only_what_is_granted_and_asked_for_is_effective() {
        let grant = |origin: &str, methods: &[&str]| HttpGrant {
            origin: origin.parse().unwrap(),
            methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            private_ranges: Vec::new(),
        };
        let ask = |origin: &str, methods: &[&str]| {
            let HttpGrant { origin, methods, .. } = grant(origin, methods);
            asks(Permission::Http(HttpPermission { origin: origin.into(), methods }))
        };
        let effective = |granted: HttpGrant, asked: PermissionRequest| {
            let granted = Grants { http: vec![granted], ..Grants::default() };
            granted
                .effective(&[asked])
                .http
                .into_iter()
                .map(|http| http.methods)
                .collect::<Vec<_>>()
        };
        let none: Vec<Vec<String>> = Vec::new();
        let (wide, one, other) =
            ("https://*.a.example", "https://x.a.example", "https://x.b.example");
        assert_eq!(effective(grant(one, &[]), ask(wide, &["GET"])), [["GET"]]);
        let granted = Grants { http: vec![grant(wide, &["GET"])], ..Grants::default() };
        assert_eq!(
            granted.effective(&[ask(one, &[])]).http,
            [grant(one, &["GET"])],
            "the narrower one of the two"
        );
        assert_eq!(effective(grant(one, &["GET", "PUT"]), ask(one, &["PUT", "POST"])), [["PUT"]]);
        assert_eq!(
            effective(grant(one, &["GET"]), ask(one, &["PUT"])),
            none,
            "no method in common is not all of them"
        );
        assert_eq!(effective(grant(other, &[]), ask(wide, &[])), none);
        assert_eq!(effective(grant("https://*.b.a.example", &[]), ask(wide, &[])), [[""; 0]]);
        assert_eq!(effective(grant("http://x.a.example", &[]), ask(wide, &[])), none);
        let secrets = Grants { secrets: vec!["A".to_owned(), "B".to_owned()], ..Grants::default() };
        assert_eq!(secrets.effective(&[asks(Permission::Secret("B".to_owned()))]).secrets, ["B"]);
    }
}

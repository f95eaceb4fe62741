//! `memhost` as a library: a host of WebAssembly memory providers inside another process.
//!
//! [`Service`] is the host. It owns a data directory and runs the providers. Its parts have the
//! calls: [`Service::operations`] has a method for each memory operation. A method that takes the
//! [`Caller`] that it is done for authorizes it and leaves a record. The others are for the crates
//! of the host and authorize nobody. [`types`] has the requests
//! and answers, and [`server`] serves the host over HTTP, or without a network in
//! [`server::InProcess`].
//!
//! A data directory belongs to one [`Service`] at a time. A company needs no setup: with
//! [`ServiceOptions::zero_config`] its first operation creates a binding of the built-in provider.
//!
//! ```
//! use memhost::types::{
//!     CompanyId, Intent, QueryRequest, RecordWrite, Scope, TextId, UpsertRequest
//! };
//! use memhost::{Caller, Service, ServiceOptions};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let directory = tempfile::tempdir()?;
//!     let host = Service::open(ServiceOptions::new(directory.path())).await?;
//!     let (caller, scope) = (Caller::operator(), Scope::company(CompanyId::parse("acme")?));
//!
//!     let note = RecordWrite {
//!         text: "Deploys are frozen on Fridays".to_owned(),
//!         ..RecordWrite::default()
//!     };
//!     let request = UpsertRequest {
//!         binding_key: None,
//!         scope: scope.clone(),
//!         source: None,
//!         records: vec![note],
//!         visibility: None,
//!     };
//!     host.operations().upsert(&caller, request).await?;
//!
//!     let request = QueryRequest {
//!         binding_key: None,
//!         scope,
//!         query: "when are deploys frozen?".to_owned(),
//!         top_k: Some(3),
//!         intent: Intent::Answer,
//!         metadata_filter: None,
//!         token_budget: None,
//!         filter: None,
//!     };
//!     let answer = host.operations().query(&caller, request).await?;
//!     assert_eq!(answer.snippets[0].text, "Deploys are frozen on Fridays");
//!
//!     // Ends deliveries and jobs that are in flight, for at most this time.
//!     host.background().shutdown(std::time::Duration::from_secs(5)).await;
//!     Ok(())
//! }
//! ```
//!
//! # Plugins that are not trusted
//!
//! Compiling a plugin takes time and memory that the plugin chooses, and a library cannot end it.
//! Name the program `memhost` of the same version in `options.sandbox.compiler`
//! ([`Compiler::Process`]), and each plugin is compiled in a process with [`CompileLimits`]. Its
//! schema of a configuration, which can ask for any amount of computing, is used in such a process,
//! too. The default, [`Compiler::InProcess`], is for plugins that you trust.
//!
//! # Features
//!
//! - `cli` (default): the binary `memhost` and the dependencies of its command line. An embedding
//!   process turns it off: `memhost = { version = "0.1", default-features = false }`.

pub use memhost_core::plugins::{CosignKey, Trust, TrustedKey};
pub use memhost_core::{
    Audit, Background, Caller, CompileLimits, Compiler, CompilerProcess, Control, CreateBinding,
    Group, Home, Joined, Membership, Monitor, OpenError, Operations, Peer, Seen, Service,
    ServiceError, ServiceOptions, SharedParts, Tenancy, Tenure, Term, Transfer,
};
pub use memhost_types as types;

/// A host over HTTP: [`router`](server::router) is an axum router for a server of one's own, and
/// [`run`](server::run) serves on [`Endpoint`](server::Endpoint)s. [`InProcess`](server::InProcess)
/// calls the same routes without a network.
pub mod server {
    pub use memhost_server::{
        Address, AdminToken, AuthError, ClusterOptions, Endpoint, InProcess, Method, Request,
        ServeError, ServerOptions, Surfaces, openapi, router, run, run_cluster,
    };
}

/// The examples of `README.md`, which are compiled with the tests of documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

//! The SDK for authors of memory providers.
//!
//! Implement [`Provider`] and write `memhost_sdk::export!(MyProvider);`. Each optional interface of
//! the contract is another trait and another line: [`Correction`] with `export_correction!`, and so
//! on. The types in [`types`] are the contract's own. [`storage`] keeps values between calls,
//! [`jobs`] keeps work for later, [`directory`] is the granted directory, [`embeddings`] are
//! vectors by the operator's model, [`meter`] reports what a call used, [`call`] says how long it
//! may still take and what was granted, [`http`] and [`remote`] are for records at a service,
//! [`words`] is a search by words, `log`'s macros reach the operator, and [`testing`] runs a
//! provider natively under `cargo test`.
//!
//! ```
//! use memhost_sdk::{Provider, types::*};
//!
//! struct Echo;
//!
//! impl Provider for Echo {
//!     type Config = memhost_sdk::NoConfig;
//!     fn describe() -> Description {
//!         Description::new(
//!             "echo",
//!             env!("CARGO_PKG_VERSION"),
//!             "Remembers nothing and repeats the question",
//!         )
//!     }
//!     fn open(_: Self::Config) -> Result<Self, Error> {
//!         Ok(Echo)
//!     }
//!     fn capture(&mut self, _: CaptureRequest) -> Result<CaptureResponse, Error> {
//!         Ok(CaptureResponse::default())
//!     }
//!     fn upsert_records(&mut self, _: UpsertRequest) -> Result<UpsertResponse, Error> {
//!         Err(Error::unsupported("echo keeps no records"))
//!     }
//!     fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
//!         Ok(ContextBundle::from(vec![Snippet::new("echo", request.query)]))
//!     }
//!     fn list_records(&mut self, _: ListRequest) -> Result<ListPage, Error> {
//!         Ok(ListPage::default())
//!     }
//!     fn get_record(&mut self, _: RecordId, _: Scope) -> Result<GetResponse, Error> {
//!         Ok(GetResponse::default())
//!     }
//!     fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
//!         Ok(ForgetResponse::all(request.ids, ForgetEffect::NotFound))
//!     }
//! }
//!
//! memhost_sdk::export!(Echo);
//! # fn main() {
//! let mut echo = memhost_sdk::testing::open::<Echo>(serde_json::json!({})).unwrap();
//! let bundle = echo.query(memhost_sdk::testing::query("hello")).unwrap();
//! assert_eq!(bundle.snippets[0].text, "hello");
//! # }
//! ```

// The guide's examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod guide {}

#[doc(hidden)]
pub mod bindings;
pub mod call;
mod config;
mod conveniences;
mod directory;
pub mod embeddings;
mod exports;
mod fit;
mod host;
pub mod http;
pub mod jobs;
mod logging;
pub mod meter;
#[doc(hidden)]
pub mod optional;
mod provider;
pub mod remote;
#[cfg(feature = "schema")]
pub mod schema;
pub mod storage;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
pub mod types;
pub mod words;

/// For `#[derive(JsonSchema)]` beside [`schema::of`].
#[cfg(feature = "schema")]
pub use schemars;

pub use config::{NoConfig, check_config, parse_config};
pub use directory::directory;
#[doc(hidden)]
pub use exports::Adapter;
pub use fit::{MAX_TEXT_BYTES, is_record_id};
pub use log;
pub use logging::warn_once;
pub use optional::traits::*;
pub use provider::Provider;

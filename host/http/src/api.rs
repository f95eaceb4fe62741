//! The runtime plane (`/runtime/v1`, memory traffic) and the control plane (`/control/v1`,
//! bindings, operation log, plugins). Turns a request into one call of `core`, and its answer or
//! error into a response.

mod batch;
mod billing;
mod binding;
mod company;
mod control;
mod event;
mod hook;
mod job;
mod list;
mod review;
mod route_table;
mod runtime;
mod stream;
mod token;

pub use self::binding::{BriefBinding, BriefResolved, TargetView};
pub use self::control::{ChangeHost, CompaniesView, CompanyView};
pub use self::job::JobView;
pub use self::route_table::Items;

use std::sync::Arc;

use aide::axum::ApiRouter;

use crate::document;
use memhost_core::Service;

/// Memory traffic.
pub fn runtime() -> ApiRouter<Arc<Service>> {
    let routes = runtime::routes()
        .merge(batch::routes())
        .merge(hook::runtime_routes())
        .merge(event::runtime_routes());
    routes.merge(job::runtime_routes()).with_path_items(document::plane("runtime"))
}

/// Governance and views for operators.
pub fn control() -> ApiRouter<Arc<Service>> {
    let company = control::company_routes()
        .merge(binding::routes())
        .merge(token::company_routes())
        .merge(hook::routes())
        .merge(job::routes())
        .merge(review::routes())
        .merge(billing::routes())
        .merge(event::routes())
        .merge(stream::company_routes())
        .merge(company::company_routes());
    let host =
        control::routes().merge(token::routes()).merge(company::routes()).merge(stream::routes());
    company.merge(host).with_path_items(document::plane("control"))
}

//! A company as a whole: how long its operations are kept, export, import, and its end. And backups, which are of all of
//! them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::Json;
use axum::body::{Body as HttpBody, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::about;
use crate::Problem;
use crate::{Administering, Authorized, Erasing, Host, Hosting, Viewing};
use crate::{Body, Company, Created, JsonLines};
use memhost_core::{BackupRequest, BackupView, Erased, Imported, Retention, Service, ServiceError};
use memhost_types::CompanyId;

/// The longest line of an import, in bytes: a record of 1 MiB whose every byte is escaped fits.
const MAX_LINE: usize = 16 << 20;

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/retention",
            get_with(retention, about("getRetention", "Show how long operations are kept", ""))
                .put_with(set_retention, about("setRetention", "Set how long operations are kept", "As a whole.")),
        )
        .api_route(
            "/export",
            get_with(export, |operation| {
                let about = about(
                    "exportCompany",
                    "Export everything of a company",
                    "One JSON value a line. The last line says that it is whole: a body without it was cut off.",
                );
                about(operation).response::<200, JsonLines>()
            }),
        )
        .api_route(
            "/import",
            post_with(import, |operation| {
                let about = about(
                    "importCompany",
                    "Take a company in that was exported",
                    "The lines of an export. All of it or nothing; the company must not be here yet.",
                );
                about(operation).input::<JsonLines>()
            })
            .layer(DefaultBodyLimit::disable()),
        )
        .api_route(
            "/erase",
            post_with(
                erase,
                about("eraseCompany", "Erase a company", "For good. What is left is a signed tombstone that says so."),
            ),
        )
        .with_path_items(|item| item.tag("companies"))
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/tombstones/{company}",
            get_with(tombstone, about("getTombstone", "Show what is left of an erased company", "")),
        )
        .api_route(
            "/backups",
            post_with(
                backup,
                about("createBackup", "Copy everything while the host works", "To the host's own machine."),
            ),
        )
        .with_path_items(|item| item.tag("host"))
}

async fn retention(State(service): State<Arc<Service>>, allowed: Authorized<Viewing>) -> Json<Retention> {
    Json(service.retention(&allowed.company))
}

async fn set_retention(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Administering>,
    Body(request): Body<Retention>,
) -> Result<Json<Retention>, Problem> {
    Ok(Json(service.set_retention(&allowed.caller, &allowed.company, request).await?))
}

/// Lines as they are read. One that cannot be read ends the body early, so that nobody takes it for the whole.
struct Lines(mpsc::Receiver<Result<String, ServiceError>>);

impl futures_core::Stream for Lines {
    type Item = Result<Bytes, ServiceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|line| {
            line.map(|line| line.map(Bytes::from).inspect_err(|error| tracing::error!(%error, "an export was cut off")))
        })
    }
}

async fn export(State(service): State<Arc<Service>>, allowed: Authorized<Administering>) -> Response {
    let lines = Lines(service.export(&allowed.company));
    let mut response = HttpBody::from_stream(lines).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}

async fn import(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Erasing>,
    request: Request,
) -> Result<Created<Imported>, Problem> {
    let (lines, receiver) = mpsc::channel(64);
    let reading = tokio::spawn(read_lines(request.into_body(), lines));
    let done = service.import(&allowed.caller, &allowed.company, receiver).await;
    reading.abort();
    Ok(Created(done?))
}

/// Cuts a body into lines, without ever holding more than one of them.
async fn read_lines(mut body: HttpBody, lines: mpsc::Sender<Result<String, String>>) {
    let mut pending = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = match frame.map(|frame| frame.into_data()) {
            Ok(Ok(data)) => data,
            Ok(Err(_)) => continue,
            Err(error) => {
                drop(lines.send(Err(format!("ended early: {error}"))).await);
                return;
            }
        };
        pending.extend_from_slice(&data);
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let rest = pending.split_off(end + 1);
            let line = std::mem::replace(&mut pending, rest);
            let line = String::from_utf8(line).map_err(|_| "is not UTF-8".to_owned());
            if lines.send(line).await.is_err() {
                return;
            }
        }
        if pending.len() > MAX_LINE {
            drop(lines.send(Err(format!("has a line of more than {MAX_LINE} bytes"))).await);
            return;
        }
    }
    if !pending.is_empty() {
        drop(lines.send(String::from_utf8(pending).map_err(|_| "is not UTF-8".to_owned())).await);
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EraseRequest {
    /// The company once more: nobody erases one by a slip.
    confirm: CompanyId,
}

async fn erase(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Erasing>,
    Body(request): Body<EraseRequest>,
) -> Result<Json<Erased>, Problem> {
    if request.confirm != allowed.company {
        let detail = format!("is not {}; name the company that is to be erased", allowed.company);
        return Err(Problem::new(StatusCode::BAD_REQUEST, "invalid_request", detail).at("confirm"));
    }
    let erased = service.erase_company(&allowed.caller, &allowed.company).await?;
    Ok(Json(Erased::clone(&erased)))
}

async fn tombstone(
    State(service): State<Arc<Service>>,
    _: Host<Hosting>,
    Company(company): Company,
) -> Result<Json<Erased>, Problem> {
    let missing = || Problem::new(StatusCode::NOT_FOUND, "no_tombstone", format!("{company} was not erased here"));
    service.tombstone(&company).map(|erased| Json(Erased::clone(&erased))).ok_or_else(missing)
}

async fn backup(
    State(service): State<Arc<Service>>,
    _: Host<Hosting>,
    Body(request): Body<BackupRequest>,
) -> Result<Created<BackupView>, Problem> {
    Ok(Created(service.backup(request).await?))
}

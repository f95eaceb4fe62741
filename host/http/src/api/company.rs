//! A company as a whole: retention, export, import and erasure; and backups of all companies.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aide::OperationInput;
use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation};
use axum::Json;
use axum::body::{Body as HttpBody, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::describe;
use crate::failure::{ImportCodes, TombstoneCodes};
use crate::{
    Authorized, Body, Company, Created, Failure, HostAuthorized, NdjsonAnswer, Problem, ProblemCode, document,
    permission,
};
use memhost_core::{BackupRequest, BackupView, Erased, Imported, Retention, Service, ServiceError};
use memhost_types::CompanyId;

/// The longest line of an import, in bytes: a record of 1 MiB whose every byte is escaped fits.
const MAX_LINE: usize = 16 << 20;

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/retention",
            get_with(retention, describe("getRetention", "Show how long operations are kept", ""))
                .put_with(set_retention, describe("setRetention", "Set how long operations are kept", "As a whole.")),
        )
        .api_route(
            "/export",
            get_with(export, |operation| {
                let whole =
                    "One JSON value a line. The last line says that it is whole: a body without it was cut off.";
                describe("exportCompany", "Export everything of a company", whole)(operation)
                    .response::<200, NdjsonAnswer>()
            }),
        )
        .api_route(
            "/import",
            post_with(
                import,
                describe(
                    "importCompany",
                    "Take a company in that was exported",
                    "The lines of an export. All of it or nothing; the company must not be here yet.",
                ),
            )
            .layer(DefaultBodyLimit::disable()),
        )
        .api_route(
            "/erase",
            post_with(
                erase,
                describe(
                    "eraseCompany",
                    "Erase a company",
                    "For good. What is left is a signed tombstone that says so.",
                ),
            ),
        )
        .with_path_items(|item| item.tag("companies"))
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/tombstones/{company}",
            get_with(tombstone, describe("getTombstone", "Show what is left of an erased company", "")),
        )
        .api_route(
            "/backups",
            post_with(
                backup,
                describe("createBackup", "Copy everything while the host works", "To the host's own machine."),
            ),
        )
        .with_path_items(|item| item.tag("host"))
}

async fn retention(State(service): State<Arc<Service>>, allowed: Authorized<permission::View>) -> Json<Retention> {
    Json(service.retention(&allowed.company))
}

async fn set_retention(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    Body(request): Body<Retention>,
) -> Result<Json<Retention>, Problem> {
    Ok(Json(service.set_retention(&allowed.caller, &allowed.company, request).await?))
}

/// The lines of an export. A line that cannot be read ends the body early, so that it lacks the last line of a complete
/// export.
struct ExportLines(mpsc::Receiver<Result<String, ServiceError>>);

impl futures_core::Stream for ExportLines {
    type Item = Result<Bytes, ServiceError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|line| {
            line.map(|line| line.map(Bytes::from).inspect_err(|error| tracing::error!(%error, "an export was cut off")))
        })
    }
}

async fn export(State(service): State<Arc<Service>>, allowed: Authorized<permission::Administer>) -> Response {
    let lines = ExportLines(service.export(&allowed.company));
    let mut response = HttpBody::from_stream(lines).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}

/// The lines of an import. They are read while they are imported, so the body has no limit.
struct Import(HttpBody);

impl<S: Sync> FromRequest<S> for Import {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        Ok(Self(request.into_body()))
    }
}

impl OperationInput for Import {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        document::body(operation, "application/x-ndjson", MediaType::default());
        document::problems(operation, [ProblemCode::InvalidRequest]);
    }
}

async fn import(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Erase>,
    Import(body): Import,
) -> Result<Created<Imported>, Failure<ImportCodes>> {
    let (lines, receiver) = mpsc::channel(64);
    let reading = tokio::spawn(read_lines(body, lines));
    let done = service.import(&allowed.caller, &allowed.company, receiver).await;
    reading.abort();
    Ok(Created(done?))
}

/// Splits a body into lines, with at most one line in memory.
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
    allowed: Authorized<permission::Erase>,
    Body(request): Body<EraseRequest>,
) -> Result<Json<Erased>, Problem> {
    if request.confirm != allowed.company {
        let detail = format!("is not {}; name the company that is to be erased", allowed.company);
        return Err(Problem::invalid(detail).at("confirm"));
    }
    let erased = service.erase_company(&allowed.caller, &allowed.company).await?;
    Ok(Json(Erased::clone(&erased)))
}

async fn tombstone(
    State(service): State<Arc<Service>>,
    _: HostAuthorized,
    Company(company): Company,
) -> Result<Json<Erased>, Failure<TombstoneCodes>> {
    let missing = || Problem::new(ProblemCode::NoTombstone, format!("{company} was not erased here"));
    let erased = service.tombstone(&company).ok_or_else(missing)?;
    Ok(Json(Erased::clone(&erased)))
}

async fn backup(
    State(service): State<Arc<Service>>,
    _: HostAuthorized,
    Body(request): Body<BackupRequest>,
) -> Result<Created<BackupView>, Problem> {
    Ok(Created(service.backup(request).await?))
}

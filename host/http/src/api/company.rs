//! A company as a whole: retention, export, import and erasure; and backups of all companies.

use std::convert::Infallible;
use std::sync::Arc;

use aide::OperationInput;
use aide::axum::ApiRouter;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation};
use axum::body::Body as HttpBody;
use axum::extract::{FromRequest, Request};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use super::route_table::routes;
use crate::failure::{EraseCodes, ImportCodes, OperationCodes, TombstoneCodes};
use crate::{
    Authorized, Body, Company, Created, Failure, HostAuthorized, Json, NdjsonAnswer, Problem,
    ProblemCode, Query, document, permission,
};
use memhost_core::{
    BackupRequest, BackupView, CompanyUsage, Erased, ImportOptions, Imported, MAX_IMPORT_LINE,
    Restored, Retention, Service,
};
use memhost_types::{BindingKey, CompanyId};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    routes! { COMPANY, "companies":
        "/retention" {
            get retention => "getRetention", "Show how long operations are kept";
            put set_retention =>
                "setRetention", "Set how long operations are kept", "Replaces all settings.";
        }
        "/usage" {
            get usage => "getUsage", "Show how much the host keeps of a company",
                "Without the storage and the directories of its bindings.";
        }
        "/export" {
            get export => "exportCompany", "Export everything of a company",
                "One JSON value a line. The last line says that the export is complete; a body \
                 without it was cut off.";
        }
        "/import" {
            post import => "importCompany", "Import an exported company",
                "The body has the lines of an export. All of it or nothing. The company must not \
                 exist here. Grants and \
                 limits of the file are requests that wait for a decision, and so do the records \
                 of such bindings.";
        }
        "/restore" {
            post restore => "restoreCompany", "Restore the records of a company in place",
                "The body has the lines of an export of the company. The records of each of its \
                 bindings take the place of those that the binding has, all at once at the end; \
                 until then nothing changes, and the company cannot be used. Bindings, tokens, \
                 budgets and the log stay as they are, and what was forgotten since stays \
                 forgotten.";
        }
        "/erase" {
            post erase => "eraseCompany", "Erase a company",
                "This cannot be undone, and the id is not used again on this host: the company can \
                 be imported on another one only. A signed tombstone remains and says what was \
                 removed. A provider that cannot be asked to forget is named before the company is \
                 closed.";
        }
    }
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { HOST, "host":
        "/tombstones/{company}" {
            get tombstone => "getTombstone", "Show the tombstone of an erased company";
        }
        "/backups" {
            post backup => "createBackup", "Write a backup while the host runs",
                "To a directory of the host's machine.";
        }
    }
}

async fn retention(allowed: Authorized<permission::View>) -> Json<Retention> {
    Json(allowed.service.tenancy().retention(&allowed.company))
}

async fn set_retention(
    allowed: Authorized<permission::Administer>,
    Body(request): Body<Retention>,
) -> Result<Json<Retention>, Problem> {
    Ok(Json(
        allowed.service.tenancy().set_retention(&allowed.caller, &allowed.company, request).await?,
    ))
}

async fn usage(allowed: Authorized<permission::View>) -> Result<Json<CompanyUsage>, Problem> {
    Ok(Json(allowed.service.tenancy().company_usage(&allowed.company)?))
}

async fn export(
    allowed: Authorized<permission::Move>,
) -> Result<NdjsonAnswer, Failure<OperationCodes>> {
    // An error ends the body early, so that it lacks the last line of a complete export.
    allowed.service.transfer().check_export(&allowed.company).await?;
    let lines = ReceiverStream::new(allowed.service.transfer().export(&allowed.company))
        .map(|line| line.inspect_err(|error| tracing::error!(%error, "an export was cut off")));
    Ok(NdjsonAnswer(HttpBody::from_stream(lines)))
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

/// An operator's decisions before an import.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct ImportQuery {
    /// Whether the grants and limits of the bindings are accepted as they are. Otherwise they are
    /// requests, and records of such bindings wait for a decision.
    accept_grants: bool,
    /// `company`: records whose scope is not known become visible to the whole company. Otherwise
    /// they are refused.
    scope: Option<ImportScope>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ImportScope {
    Company,
}

async fn import(
    allowed: Authorized<permission::Bring>,
    Query(query): Query<ImportQuery>,
    Import(body): Import,
) -> Result<Created<Imported>, Failure<ImportCodes>> {
    let options = ImportOptions {
        accepts_grants: query.accept_grants,
        accepts_unscoped: matches!(query.scope, Some(ImportScope::Company)),
    };
    // Two lines of the greatest length at most are in memory, beside the one that is imported.
    let (lines, receiver) = mpsc::channel(1);
    let reading = tokio::spawn(read_lines(body, lines));
    let done = allowed
        .service
        .transfer()
        .import(&allowed.caller, &allowed.company, options, receiver)
        .await;
    reading.abort();
    Ok(Created(done?))
}

/// An operator's decision before a restore.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct RestoreQuery {
    /// `company`: records whose scope is not known become visible to the whole company. Otherwise
    /// they are refused.
    scope: Option<ImportScope>,
}

async fn restore(
    allowed: Authorized<permission::Move>,
    Query(query): Query<RestoreQuery>,
    Import(body): Import,
) -> Result<Json<Restored>, Problem> {
    let (lines, receiver) = mpsc::channel(1);
    let reading = tokio::spawn(read_lines(body, lines));
    let unscoped = query.scope.is_some();
    let transfer = allowed.service.transfer();
    let done = transfer.restore(&allowed.caller, &allowed.company, unscoped, receiver).await;
    reading.abort();
    Ok(Json(done?))
}

/// Splits a body into lines, with at most one line in memory.
async fn read_lines(mut body: HttpBody, lines: mpsc::Sender<Result<String, String>>) {
    let mut pending: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = match frame.map(|frame| frame.into_data()) {
            Ok(Ok(data)) => data,
            Ok(Err(_)) => continue,
            Err(error) => {
                drop(lines.send(Err(format!("ended early: {error}"))).await);
                return;
            }
        };
        // Each byte is looked at once.
        let mut rest = &data[..];
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (part, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            if pending.len() + part.len() > MAX_IMPORT_LINE {
                drop(
                    lines
                        .send(Err(format!("has a line of more than {MAX_IMPORT_LINE} bytes")))
                        .await,
                );
                return;
            }
            pending.extend_from_slice(part);
            rest = after;
            if end.is_some() && lines.send(text_of(std::mem::take(&mut pending))).await.is_err() {
                return;
            }
        }
    }
    if !pending.is_empty() {
        drop(lines.send(text_of(pending)).await);
    }
}

fn text_of(line: Vec<u8>) -> Result<String, String> {
    String::from_utf8(line).map_err(|_| "is not UTF-8".to_owned())
}

/// Bindings that one request gives up at most.
const MOST_ABANDONED: usize = 64;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EraseRequest {
    /// The company's id again, as a confirmation.
    confirm: CompanyId,
    /// Bindings whose provider cannot confirm that it has forgotten everything: what it has is
    /// given up, and the tombstone says so.
    #[serde(default)]
    #[schemars(length(max = 64))]
    abandon: Vec<BindingKey>,
}

async fn erase(
    allowed: Authorized<permission::Erase>,
    Body(request): Body<EraseRequest>,
) -> Result<Json<Erased>, Failure<EraseCodes>> {
    if request.confirm != allowed.company {
        let detail = format!("is not {}; repeat the id of the company to erase", allowed.company);
        return Err(Problem::invalid(detail).at("confirm").into());
    }
    if request.abandon.len() > MOST_ABANDONED {
        let detail =
            format!("has {} entries; at most {MOST_ABANDONED} are allowed", request.abandon.len());
        return Err(Problem::invalid(detail).at("abandon").into());
    }
    let erased = allowed
        .service
        .transfer()
        .erase_company(&allowed.caller, &allowed.company, &request.abandon)
        .await?;
    Ok(Json(Erased::clone(&erased)))
}

async fn tombstone(
    allowed: HostAuthorized,
    Company(company): Company,
) -> Result<Json<Erased>, Failure<TombstoneCodes>> {
    let missing =
        || Problem::new(ProblemCode::NoTombstone, format!("{company} was not erased here"));
    let erased = allowed.service.tenancy().tombstone(&company).ok_or_else(missing)?;
    Ok(Json(Erased::clone(&erased)))
}

async fn backup(
    allowed: HostAuthorized,
    Body(request): Body<BackupRequest>,
) -> Result<Created<BackupView>, Problem> {
    Ok(Created(allowed.service.backup(request).await?))
}

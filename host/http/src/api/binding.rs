//! The control plane of bindings. A binding's revision is its entity tag: with `if-match`, a change
//! applies only to the revision that the caller has seen.

use std::sync::Arc;

use aide::OperationInput;
use aide::axum::ApiRouter;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::list::PageQuery;
use super::route_table::{Items, routes};
use crate::extract::read_json;
use crate::failure::{BindingCodes, BindingStateCodes, GrantCodes, ResolveCodes, TargetCodes};
use crate::merge::merge;
use crate::{
    Authorized, Body, EntityTagged, Failure, Json, NoContent, PathParam, Problem, ProblemCode,
    Query, document, permission,
};
use memhost_core::{
    Act, BindingView, CreateBinding, GrantsView, Page, ResolutionStep, ResolvedView, Service,
    SetTarget, UpdateBinding, Why,
};
use memhost_types::{
    AgentId, BindingKey, Grants, JsonObject, ProviderCapabilities, ProviderKey, Target,
};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { COMPANY, "bindings":
        "/bindings" {
            get list =>
                "listBindings", "List the bindings of a company",
                "By key. Without `limit` a page has 1,000.";
            post create =>
                "createBinding", "Create a binding", "Its provider checks the configuration.";
        }
        "/bindings/{key}" {
            get show => "getBinding", "Show a binding",
                "Its revision is the entity tag. As long as nobody has decided who answers for the \
                 company, `default` is the built-in provider's: it has the revision 0 and is not \
                 stored until the first write.";
            patch update => "updateBinding", "Change a binding",
                "Absent fields stay as they are. `limits` and `policy` are merged (RFC 7396): \
                 members that are left out \
                 stay, null resets one to its default. `config` is replaced as a whole. With \
                 `If-Match`, the change \
                 applies only to that revision.";
            delete remove =>
                "deleteBinding", "Delete a binding and what its provider stored on this host";
        }
        "/bindings/{key}/grants" {
            get grants =>
                "getGrants", "Show the permissions that a provider has, and those that it requests";
            put set_grants => "setGrants", "Set what a provider may reach",
                "Replaces all grants: what is absent is revoked.";
        }
        "/bindings/{key}/reset" {
            post reset => "resetBinding", "Close a binding's circuit breaker",
                "Versions that were rejected for it may be tried again.";
        }
        "/default-binding" {
            put ensure =>
                "ensureDefaultBinding", "Make sure that the company has a default binding",
                "A default binding that is there stays as it is. Otherwise the binding of this key \
                 becomes it, and is \
                 created where it is missing. The call can be repeated.";
        }
        "/resolve" {
            get resolve => "resolveBinding", "Show which binding answers, and by which rule",
                "An agent may ask for itself only, and the answer omits the binding's \
                 configuration.";
        }
        "/targets" {
            get targets =>
                "listTargets", "List which bindings the company and its agents are assigned to";
            put set_target =>
                "setTarget", "Assign a binding to an agent, or make it the company's default";
        }
    }
}

/// The revision that the caller has seen. None without the header, and for `*`.
struct IfMatch(Option<u64>);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(IF_MATCH) else { return Ok(Self(None)) };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self(None));
        }
        let revision = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'))
            .and_then(|text| text.parse().ok());
        match revision {
            Some(revision) => Ok(Self(Some(revision))),
            None => {
                let detail = "`if-match` is not an entity tag of a binding; send the `etag` of the \
                              answer that you have";
                Err(Problem::invalid(detail).at("if-match"))
            }
        }
    }
}

impl OperationInput for IfMatch {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let description = "The `ETag` of the binding as you have seen it: another revision is a \
                           problem `stale_revision`.";
        document::header::<EntityTag>(operation, "If-Match", description);
        document::problems(operation, [ProblemCode::InvalidRequest, ProblemCode::StaleRevision]);
    }
}

/// A revision between quotation marks, or `*` for any.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a header")]
struct EntityTag(#[schemars(length(min = 1), regex(pattern = "^(\\*|\"[0-9]+\")$"))] String);

async fn list(
    allowed: Authorized<permission::View>,
    Query(page): Query<PageQuery>,
) -> Result<Json<Page<BindingView>>, Problem> {
    Ok(Json(
        allowed
            .service
            .control()
            .bindings_page(&allowed.company, page.cursor.as_deref(), page.limit)
            .await?,
    ))
}

async fn create(
    allowed: Authorized<permission::Establish>,
    Body(request): Body<CreateBinding>,
) -> Result<EntityTagged<201>, Failure<BindingCodes>> {
    let made = allowed
        .service
        .control()
        .create_binding(&allowed.caller, &allowed.company, request)
        .await?;
    Ok(EntityTagged(made))
}

async fn ensure(
    allowed: Authorized<permission::Establish>,
    Body(request): Body<CreateBinding>,
) -> Result<EntityTagged<200>, Failure<BindingCodes>> {
    let (found, _) = allowed
        .service
        .control()
        .ensure_default_binding(&allowed.caller, &allowed.company, request)
        .await?;
    Ok(EntityTagged(found))
}

async fn show(
    allowed: Authorized<permission::View>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<EntityTagged<200>, Problem> {
    Ok(EntityTagged(allowed.service.control().binding(&allowed.company, &key).await?))
}

async fn update(
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    IfMatch(seen): IfMatch,
    Body(PatchBinding(patch)): Body<PatchBinding>,
) -> Result<EntityTagged<200>, Failure<BindingCodes>> {
    let mut request = merged(&allowed, &key, patch)?;
    request.revision = seen.or(request.revision);
    Ok(EntityTagged(
        allowed
            .service
            .control()
            .update_binding(&allowed.caller, &allowed.company, &key, request)
            .await?,
    ))
}

/// A change of a binding, as JSON Merge Patch.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct PatchBinding(#[schemars(with = "UpdateBinding")] JsonObject);

/// The change with the limits and the policy as they will be as a whole.
fn merged(
    allowed: &Authorized<permission::Administer>,
    key: &BindingKey,
    mut patch: JsonObject,
) -> Result<UpdateBinding, Problem> {
    if patch.get("limits").is_some() || patch.get("policy").is_some() {
        let present = allowed.service.control().stored_binding(&allowed.company, key)?;
        let whole = [
            ("limits", serde_json::to_value(present.limits)),
            ("policy", serde_json::to_value(&present.policy)),
        ];
        for (name, whole) in whole {
            if let (Some(Value::Object(asked)), Ok(Value::Object(mut whole))) =
                (patch.get_mut(name), whole)
            {
                merge(&mut whole, std::mem::take(asked));
                *asked = whole;
            }
        }
        // What was merged is of this revision.
        patch.entry("revision").or_insert_with(|| present.revision.into());
    }
    read_json(Value::Object(patch).to_string().as_bytes())
}

/// The target of an assignment.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetView {
    /// The agent; absent: the company, whose default the binding is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The binding that answers.
    pub binding_key: BindingKey,
}

async fn targets(
    allowed: Authorized<permission::View>,
) -> Result<Json<Items<TargetView>>, Problem> {
    let view = |(target, binding_key)| match target {
        Target::Company => TargetView { agent_id: None, binding_key },
        Target::Agent(agent) => TargetView { agent_id: Some(agent), binding_key },
    };
    Ok(Json(Items {
        items: allowed.service.control().targets(&allowed.company).into_iter().map(view).collect(),
    }))
}

async fn remove(
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    IfMatch(seen): IfMatch,
) -> Result<NoContent, Failure<BindingStateCodes>> {
    allowed.service.control().delete_binding(&allowed.caller, &allowed.company, &key, seen).await?;
    Ok(NoContent)
}

async fn grants(
    allowed: Authorized<permission::View>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<Json<GrantsView>, Problem> {
    Ok(Json(allowed.service.control().grants(&allowed.company, &key).await?))
}

async fn set_grants(
    allowed: Authorized<permission::Grant>,
    PathParam(key): PathParam<BindingKey>,
    IfMatch(seen): IfMatch,
    Body(grants): Body<Grants>,
) -> Result<Json<GrantsView>, Failure<GrantCodes>> {
    Ok(Json(
        allowed
            .service
            .control()
            .set_grants(&allowed.caller, &allowed.company, &key, seen, grants)
            .await?,
    ))
}

async fn reset(
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<EntityTagged<200>, Failure<BindingStateCodes>> {
    Ok(EntityTagged(
        allowed.service.control().reset_binding(&allowed.caller, &allowed.company, &key).await?,
    ))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResolveQuery {
    /// The agent that asks; absent: the company.
    agent_id: Option<AgentId>,
    /// The binding that a request would name.
    binding_key: Option<BindingKey>,
}

/// The binding that answers, for callers without the permission to view bindings.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BriefResolved {
    /// The one that answers.
    pub binding: BriefBinding,
    /// The rule that decides.
    pub why: Why,
    /// Every rule with what it says.
    pub steps: Vec<ResolutionStep>,
}

/// The part of a binding that every caller may know.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BriefBinding {
    /// Unique in the company.
    pub key: BindingKey,
    /// Which provider answers.
    pub provider_key: ProviderKey,
    /// A disabled binding refuses every operation.
    pub enabled: bool,
    /// What the build that serves, or would, can do beside the operations that every provider has;
    /// absent where no build can serve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<ProviderCapabilities>,
}

/// The answer of `resolve`: its content depends on the caller's permissions.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ResolvedOrBrief {
    /// For callers who may view bindings.
    Whole(Box<ResolvedView>),
    /// For all other callers.
    Brief(BriefResolved),
}

/// An agent resolves only for itself. The whole binding is shown only to callers who may view
/// bindings.
async fn resolve(
    allowed: Authorized<permission::Resolve>,
    Query(query): Query<ResolveQuery>,
) -> Result<Json<ResolvedOrBrief>, Failure<ResolveCodes>> {
    let agent = allowed
        .service
        .tenancy()
        .own_agent(&allowed.caller, &allowed.company, query.agent_id)
        .await?;
    let resolved = allowed
        .service
        .control()
        .resolve_binding(&allowed.company, agent.as_ref(), query.binding_key.as_ref())
        .await?;
    if allowed.service.tenancy().allows(&allowed.caller, Act::View, &allowed.company) {
        return Ok(Json(ResolvedOrBrief::Whole(Box::new(resolved))));
    }
    let ResolvedView { binding: BindingView { binding, capabilities, .. }, why, steps } = resolved;
    let binding = BriefBinding {
        key: binding.key,
        provider_key: binding.provider_key,
        enabled: binding.enabled,
        capabilities,
    };
    Ok(Json(ResolvedOrBrief::Brief(BriefResolved { binding, why, steps })))
}

async fn set_target(
    allowed: Authorized<permission::Administer>,
    Body(request): Body<SetTarget>,
) -> Result<NoContent, Failure<TargetCodes>> {
    allowed.service.control().set_target(&allowed.caller, &allowed.company, request).await?;
    Ok(NoContent)
}

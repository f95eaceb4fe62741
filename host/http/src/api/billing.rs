//! What memory costs and how good it is: sums, cost and finance events, budgets, evaluation.

use std::sync::Arc;

use aide::axum::ApiRouter;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{ListQuery, PageQuery};
use super::route_table::{Items, routes};
use crate::extract::day;
use crate::{Authorized, Body, Created, Json, PathParam, Problem, Query, permission};
use memhost_core::{
    CostEventPage, EvaluationReport, GroupBy, Page, Service, ServiceError, Sums, SumsQuery,
};
use memhost_types::{
    BindingKey, BudgetView, CostEventFilter, FinanceEvent, NewFinanceEvent, OutgoingReport, Period,
    SetBudget,
};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { COMPANY, "costs":
        "/costs" {
            get costs => "getCosts", "Sum operations, tokens and costs", "Days are in UTC.";
        }
        "/outgoing" {
            get outgoing => "getOutgoing", "Show what left the host",
                "Requests of providers, and of the host for its embedding model's endpoint, by \
                 origin, binding and provider. Days are in UTC.";
        }
        "/evaluation" {
            get evaluation =>
                "getEvaluation", "Show the quality of recall",
                "For each binding, and for the company.";
        }
        "/cost-events" {
            get cost_events => "listCostEvents", "List the usage that is billed directly",
                "Newest first. To read each event once, ask for `order=oldest` and pass \
                 `nextCursor` on, also when a page is \
                 empty: events are in the order in which they were written.";
        }
        "/finance-events" {
            get finance_events => "listFinanceEvents", "List flat charges", "Newest first.";
            post add_finance_event =>
                "createFinanceEvent", "Add a flat charge", "Budgets do not include it.";
        }
        "/budgets" { get budgets => "listBudgets", "List budgets and their spending"; }
        "/budgets/{period}" {
            put set_budget =>
                "setBudget", "Set the company's budget", "The answer has all budgets.";
            delete remove_budget =>
                "deleteBudget", "Remove the company's budget", "The answer has the other budgets.";
        }
        "/bindings/{key}/budgets/{period}" {
            put set_binding_budget =>
                "setBindingBudget", "Set a binding's budget", "The answer has all budgets.";
            delete remove_binding_budget => "deleteBindingBudget", "Remove a binding's budget",
                "The answer has the other budgets.";
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CostQuery {
    /// The first day; 30 days before the last where absent.
    #[serde(default, deserialize_with = "day")]
    since: Option<Date>,
    /// The last day; today where absent.
    #[serde(default, deserialize_with = "day")]
    until: Option<Date>,
    /// By what: `day`, `binding`, `agent`, `provider`, `model`, `issue`, `project` and `run`, with
    /// commas between; one row where absent.
    #[serde(default)]
    #[schemars(regex(pattern = "^((day|binding|agent|provider|model|issue|project|run)?,)*\
                   (day|binding|agent|provider|model|issue|project|run)?$"))]
    group_by: String,
    binding_key: Option<BindingKey>,
}

impl CostQuery {
    fn sums(self) -> Result<SumsQuery, Problem> {
        let group_by = GroupBy::parse_list(&self.group_by).map_err(ServiceError::from)?;
        Ok(SumsQuery {
            since: self.since,
            until: self.until,
            group_by,
            binding_key: self.binding_key,
            binding_id: None,
        })
    }
}

async fn costs(
    allowed: Authorized<permission::View>,
    Query(query): Query<CostQuery>,
) -> Result<Json<Sums>, Problem> {
    Ok(Json(allowed.service.control().sums(&allowed.company, &query.sums()?).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OutgoingQuery {
    /// The first day; 30 days before the last where absent.
    #[serde(default, deserialize_with = "day")]
    since: Option<Date>,
    /// The last day; today where absent.
    #[serde(default, deserialize_with = "day")]
    until: Option<Date>,
    binding_key: Option<BindingKey>,
}

async fn outgoing(
    allowed: Authorized<permission::View>,
    Query(query): Query<OutgoingQuery>,
) -> Result<Json<OutgoingReport>, Problem> {
    let OutgoingQuery { since, until, binding_key } = query;
    let query = SumsQuery { since, until, binding_key, ..SumsQuery::default() };
    Ok(Json(allowed.service.control().outgoing(&allowed.company, &query).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DaysQuery {
    /// The first day; 30 days before the last where absent.
    #[serde(default, deserialize_with = "day")]
    since: Option<Date>,
    /// The last day; today where absent.
    #[serde(default, deserialize_with = "day")]
    until: Option<Date>,
}

async fn evaluation(
    allowed: Authorized<permission::View>,
    Query(query): Query<DaysQuery>,
) -> Result<Json<EvaluationReport>, Problem> {
    let query = SumsQuery { since: query.since, until: query.until, ..SumsQuery::default() };
    Ok(Json(allowed.service.control().evaluation(&allowed.company, &query).await?))
}

async fn cost_events(
    allowed: Authorized<permission::View>,
    ListQuery { filter, page }: ListQuery<CostEventFilter>,
) -> Result<Json<CostEventPage>, Problem> {
    Ok(Json(
        allowed
            .service
            .control()
            .cost_events(&allowed.company, &filter, page.cursor.as_deref(), page.limit)
            .await?,
    ))
}

async fn finance_events(
    allowed: Authorized<permission::View>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<FinanceEvent>>, Problem> {
    Ok(Json(
        allowed
            .service
            .control()
            .finance_events(&allowed.company, query.cursor.as_deref(), query.limit)
            .await?,
    ))
}

async fn add_finance_event(
    allowed: Authorized<permission::Administer>,
    Body(request): Body<NewFinanceEvent>,
) -> Result<Created<FinanceEvent>, Problem> {
    let event = allowed
        .service
        .control()
        .add_finance_event(&allowed.caller, &allowed.company, request)
        .await?;
    Ok(Created(event))
}

type Budgets = Result<Json<Items<BudgetView>>, Problem>;

async fn budgets(allowed: Authorized<permission::View>) -> Budgets {
    Ok(Json(Items { items: allowed.service.control().budgets(&allowed.company).await? }))
}

async fn change(
    allowed: Authorized<permission::Administer>,
    binding: Option<BindingKey>,
    period: Period,
    set: Option<SetBudget>,
) -> Budgets {
    let items = allowed
        .service
        .control()
        .set_budget(&allowed.caller, &allowed.company, binding.as_ref(), period, set)
        .await?;
    Ok(Json(Items { items }))
}

async fn set_budget(
    allowed: Authorized<permission::Administer>,
    PathParam(period): PathParam<Period>,
    Body(request): Body<SetBudget>,
) -> Budgets {
    change(allowed, None, period, Some(request)).await
}

async fn remove_budget(
    allowed: Authorized<permission::Administer>,
    PathParam(period): PathParam<Period>,
) -> Budgets {
    change(allowed, None, period, None).await
}

async fn set_binding_budget(
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    PathParam(period): PathParam<Period>,
    Body(request): Body<SetBudget>,
) -> Budgets {
    change(allowed, Some(key), period, Some(request)).await
}

async fn remove_binding_budget(
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    PathParam(period): PathParam<Period>,
) -> Budgets {
    change(allowed, Some(key), period, None).await
}

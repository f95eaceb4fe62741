//! What memory costs and how good it is: sums, cost and finance events, budgets, evaluation.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, put_with};
use axum::Json;
use axum::extract::State;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Deserialize;

use super::control::Items;
use super::describe;
use crate::{Authorized, Body, Created, PathParam, Problem, Query, permission};
use memhost_core::{EvaluationReport, GroupBy, Page, Service, ServiceError, Sums, SumsQuery};
use memhost_types::schema::{cursor, page_size};
use memhost_types::{BindingKey, BudgetView, CostEvent, FinanceEvent, NewFinanceEvent, Period, SetBudget};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    let of_binding = "Of one binding.";
    ApiRouter::new()
        .api_route(
            "/costs",
            get_with(costs, describe("getCosts", "Sum up what was done and what it cost", "Days are UTC's.")),
        )
        .api_route(
            "/evaluation",
            get_with(
                evaluation,
                describe("getEvaluation", "Tell how good memory was", "By binding, and all together."),
            ),
        )
        .api_route(
            "/cost-events",
            get_with(
                cost_events,
                describe("listCostEvents", "List metered use that is billed directly", "Newest first."),
            ),
        )
        .api_route(
            "/finance-events",
            get_with(finance_events, describe("listFinanceEvents", "List flat charges", "Newest first.")).post_with(
                add_finance_event,
                describe("createFinanceEvent", "Enter a flat charge", "No budget stops it."),
            ),
        )
        .api_route("/budgets", get_with(budgets, describe("listBudgets", "List budgets and what is spent of them", "")))
        .api_route(
            "/budgets/{period}",
            put_with(set_budget, describe("setBudget", "Set a company's budget", "Answers with all of them."))
                .delete_with(
                    remove_budget,
                    describe("deleteBudget", "Remove a company's budget", "Answers with those that are left."),
                ),
        )
        .api_route(
            "/bindings/{key}/budgets/{period}",
            put_with(set_binding_budget, describe("setBindingBudget", "Set a binding's budget", of_binding))
                .delete_with(
                    remove_binding_budget,
                    describe("deleteBindingBudget", "Remove a binding's budget", of_binding),
                ),
        )
        .with_path_items(|item| item.tag("costs"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CostQuery {
    /// The first day; 30 days before the last where absent.
    since: Option<Date>,
    /// The last day; today where absent.
    until: Option<Date>,
    /// By what: `day`, `binding`, `agent`, `provider` and `model`, with commas between; one row where absent.
    #[serde(default)]
    #[schemars(regex(pattern = "^((day|binding|agent|provider|model)?,)*(day|binding|agent|provider|model)?$"))]
    group_by: String,
    binding_key: Option<BindingKey>,
}

impl CostQuery {
    fn sums(self) -> Result<SumsQuery, Problem> {
        let group_by = GroupBy::parse_list(&self.group_by).map_err(ServiceError::from)?;
        Ok(SumsQuery { since: self.since, until: self.until, group_by, binding_key: self.binding_key })
    }
}

async fn costs(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    Query(query): Query<CostQuery>,
) -> Result<Json<Sums>, Problem> {
    Ok(Json(service.sums(&allowed.company, &query.sums()?).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DaysQuery {
    /// The first day; 30 days before the last where absent.
    since: Option<Date>,
    /// The last day; today where absent.
    until: Option<Date>,
}

async fn evaluation(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    Query(query): Query<DaysQuery>,
) -> Result<Json<EvaluationReport>, Problem> {
    let query = SumsQuery { since: query.since, until: query.until, ..SumsQuery::default() };
    Ok(Json(service.evaluation(&allowed.company, &query).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PageQuery {
    /// Where the page begins: `nextCursor` of the page before.
    #[schemars(transform = cursor)]
    cursor: Option<String>,
    /// How many at most.
    #[schemars(transform = page_size)]
    limit: Option<u32>,
}

async fn cost_events(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<CostEvent>>, Problem> {
    Ok(Json(service.cost_events(&allowed.company, query.cursor.as_deref(), query.limit).await?))
}

async fn finance_events(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<FinanceEvent>>, Problem> {
    Ok(Json(service.finance_events(&allowed.company, query.cursor.as_deref(), query.limit).await?))
}

async fn add_finance_event(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    Body(request): Body<NewFinanceEvent>,
) -> Result<Created<FinanceEvent>, Problem> {
    let event = service.add_finance_event(&allowed.caller, &allowed.company, request).await?;
    Ok(Created(event))
}

type Budgets = Result<Json<Items<BudgetView>>, Problem>;

async fn budgets(State(service): State<Arc<Service>>, allowed: Authorized<permission::View>) -> Budgets {
    Ok(Json(Items { items: service.budgets(&allowed.company).await? }))
}

async fn change(
    service: &Service,
    allowed: Authorized<permission::Administer>,
    binding: Option<BindingKey>,
    period: Period,
    set: Option<SetBudget>,
) -> Budgets {
    let items = service.set_budget(&allowed.caller, &allowed.company, binding.as_ref(), period, set).await?;
    Ok(Json(Items { items }))
}

async fn set_budget(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(period): PathParam<Period>,
    Body(request): Body<SetBudget>,
) -> Budgets {
    change(&service, allowed, None, period, Some(request)).await
}

async fn remove_budget(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(period): PathParam<Period>,
) -> Budgets {
    change(&service, allowed, None, period, None).await
}

async fn set_binding_budget(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    PathParam(period): PathParam<Period>,
    Body(request): Body<SetBudget>,
) -> Budgets {
    change(&service, allowed, Some(key), period, Some(request)).await
}

async fn remove_binding_budget(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    PathParam(period): PathParam<Period>,
) -> Budgets {
    change(&service, allowed, Some(key), period, None).await
}

//! What memory costs and how good it is: sums, cost and finance events, budgets, evaluation.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use jiff::civil::Date;
use serde::Deserialize;

use super::control::Items;
use crate::contract::{BindingKey, BudgetView, CostEvent, FinanceEvent, NewFinanceEvent, SetBudget};
use crate::edge::Problem;
use crate::edge::{Administering, In, Viewing};
use crate::edge::{Body, Query, parse};
use crate::service::{EvaluationReport, GroupBy, Page, Service, ServiceError, Sums, SumsQuery};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/costs", get(costs))
        .route("/evaluation", get(evaluation))
        .route("/cost-events", get(cost_events))
        .route("/finance-events", get(finance_events).post(add_finance_event))
        .route("/budgets", get(budgets))
        .route("/budgets/{period}", put(set_budget).delete(remove_budget))
        .route("/bindings/{key}/budgets/{period}", put(set_binding_budget).delete(remove_binding_budget))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CostQuery {
    since: Option<Date>,
    until: Option<Date>,
    #[serde(default)]
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
    allowed: In<Viewing>,
    Query(query): Query<CostQuery>,
) -> Result<Json<Sums>, Problem> {
    Ok(Json(service.sums(&allowed.company, &query.sums()?)?))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DaysQuery {
    since: Option<Date>,
    until: Option<Date>,
}

async fn evaluation(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
    Query(query): Query<DaysQuery>,
) -> Result<Json<EvaluationReport>, Problem> {
    let query = SumsQuery { since: query.since, until: query.until, ..SumsQuery::default() };
    // It may read many operations: not on the executor.
    let answer = tokio::task::spawn_blocking(move || service.evaluation(&allowed.company, &query)).await;
    Ok(Json(answer.map_err(|error| ServiceError::Host(error.to_string()))??))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PageQuery {
    cursor: Option<String>,
    limit: Option<u32>,
}

async fn cost_events(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<CostEvent>>, Problem> {
    Ok(Json(service.cost_events(&allowed.company, query.cursor.as_deref(), query.limit)?))
}

async fn finance_events(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<FinanceEvent>>, Problem> {
    Ok(Json(service.finance_events(&allowed.company, query.cursor.as_deref(), query.limit)?))
}

async fn add_finance_event(
    State(service): State<Arc<Service>>,
    allowed: In<Administering>,
    Body(request): Body<NewFinanceEvent>,
) -> Result<(StatusCode, Json<FinanceEvent>), Problem> {
    let event = service.add_finance_event(&allowed.caller, &allowed.company, request).await?;
    Ok((StatusCode::CREATED, Json(event)))
}

type Budgets = Result<Json<Items<BudgetView>>, Problem>;

async fn budgets(State(service): State<Arc<Service>>, allowed: In<Viewing>) -> Budgets {
    Ok(Json(Items { items: service.budgets(&allowed.company)? }))
}

async fn change(
    service: &Service,
    allowed: In<Administering>,
    binding: Option<&str>,
    period: &str,
    set: Option<SetBudget>,
) -> Budgets {
    let binding: Option<BindingKey> = binding.map(|key| parse("bindingKey", key)).transpose()?;
    let period = parse("period", period)?;
    let items = service.set_budget(&allowed.caller, &allowed.company, binding.as_ref(), period, set).await?;
    Ok(Json(Items { items }))
}

async fn set_budget(
    State(service): State<Arc<Service>>,
    Path((_, period)): Path<(String, String)>,
    allowed: In<Administering>,
    Body(request): Body<SetBudget>,
) -> Budgets {
    change(&service, allowed, None, &period, Some(request)).await
}

async fn remove_budget(
    State(service): State<Arc<Service>>,
    Path((_, period)): Path<(String, String)>,
    allowed: In<Administering>,
) -> Budgets {
    change(&service, allowed, None, &period, None).await
}

async fn set_binding_budget(
    State(service): State<Arc<Service>>,
    Path((_, key, period)): Path<(String, String, String)>,
    allowed: In<Administering>,
    Body(request): Body<SetBudget>,
) -> Budgets {
    change(&service, allowed, Some(&key), &period, Some(request)).await
}

async fn remove_binding_budget(
    State(service): State<Arc<Service>>,
    Path((_, key, period)): Path<(String, String, String)>,
    allowed: In<Administering>,
) -> Budgets {
    change(&service, allowed, Some(&key), &period, None).await
}

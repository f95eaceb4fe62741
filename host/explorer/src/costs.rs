//! Costs: sums by dimension as a table, a chart and CSV; cost events; charges; budgets.

pub(super) mod budgets;
mod csv;
pub(super) mod events;
pub(super) mod sums;

use memhost_core::{GroupBy, SumsRow};

/// The pages of this section.
const TABS: [(&str, &str); 4] = [
    ("costs", "Summary"),
    ("cost-events", "Cost events"),
    ("charges", "Flat charges"),
    ("budgets", "Budgets"),
];

fn dimension_label(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Day => "Day",
        GroupBy::Binding => "Binding",
        GroupBy::Agent => "Agent",
        GroupBy::Provider => "Provider",
        GroupBy::Model => "Model",
        GroupBy::Issue => "Issue",
        GroupBy::Project => "Project",
        GroupBy::Run => "Run",
    }
}

/// A row's value in a dimension; empty where it has none.
fn dimension_value(row: &SumsRow, by: GroupBy) -> String {
    match by {
        GroupBy::Day => row.day.map(|day| day.to_string()).unwrap_or_default(),
        GroupBy::Binding => row.binding_key.clone().unwrap_or_default(),
        GroupBy::Agent => row.agent_id.clone().unwrap_or_default(),
        GroupBy::Provider => row.provider.clone().unwrap_or_default(),
        GroupBy::Model => row.model.clone().unwrap_or_default(),
        GroupBy::Issue => row.issue_id.clone().unwrap_or_default(),
        GroupBy::Project => row.project_id.clone().unwrap_or_default(),
        GroupBy::Run => row.run_id.clone().unwrap_or_default(),
    }
}

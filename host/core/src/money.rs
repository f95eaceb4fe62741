//! Figures of facts for the metrics.

mod fact_figures;

pub(crate) use fact_figures::{Counted, FactFigures, Figures};

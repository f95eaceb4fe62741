//! What systems in front attach to a host: the policies of bindings, the events of operations, and
//! figures for the metrics.

use async_recursion::async_recursion as boxed;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;

use crate::Service;
use crate::access::{Section, WritePolicy};
use crate::error::ServiceError;
use crate::host::doctor::check::Check;
use memhost_oplog::metrics::Gauges;
use memhost_oplog::operation::OperationSink;
use memhost_store as store;
use memhost_types::{BindingKey, CompanyId, Operation, OperationFilter, RecordRow};

/// The name of the check of sections.
const NAME: &str = "integrations";

/// The work of a [`MetricSource`].
pub type ReadingGauges<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Gauges>, ServiceError>> + Send + 'a>>;

/// Adds figures to the metrics.
pub trait MetricSource: Send + Sync {
    /// The figures as they are now.
    fn gauges<'a>(&'a self, host: &'a Service, now: Timestamp) -> ReadingGauges<'a>;
}

impl Service {
    /// From here on a policy guards the binding of a section. It is not taken away again: another
    /// policy of the same section and company takes its place.
    pub fn attach_policy(&self, section: Section, policy: Arc<dyn WritePolicy>) {
        self.policies.attach(section, policy);
    }

    /// From here on the operations of a section's binding leave the events that a sink makes of
    /// them.
    pub fn attach_sink(&self, section: Section, sink: Arc<dyn OperationSink>) {
        self.oplog.sinks.attach(section, sink);
    }

    /// From here on the metrics have figures of a section.
    pub fn attach_metrics(&self, section: Section, source: Arc<dyn MetricSource>) {
        self.metric_sources.attach(section, source);
    }

    /// Reads the first `most` rows of the records of a company's default or named binding, and
    /// answers which binding that is. `None`: there is none.
    ///
    /// # Errors
    /// Where they cannot be read.
    #[boxed]
    pub async fn each_row(
        &self,
        company: &CompanyId,
        binding: Option<&BindingKey>,
        most: usize,
        each: &mut (dyn FnMut(RecordRow) + Send),
    ) -> Result<Option<BindingKey>, ServiceError> {
        let Ok(resolved) = self.bindings.resolve(company, None, binding) else { return Ok(None) };
        let mut rows = self.records.rows(company, resolved.binding.id);
        for _ in 0..most {
            let Some(row) = rows.next().await? else { break };
            each(row);
        }
        Ok(Some(resolved.binding.key.clone()))
    }

    /// Reads the newest `most` operations of a company that match, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    #[boxed]
    pub async fn each_operation(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        most: usize,
        each: &mut (dyn FnMut(Operation) + Send),
    ) -> Result<(), ServiceError> {
        let mut operations = store::scan_operations(&*self.store, company, filter);
        for _ in 0..most {
            let Some(operation) = operations.next().await? else { break };
            each(operation);
        }
        Ok(())
    }

    /// Warns of a section that names a company or a binding which is not there: its routes answer
    /// 404. `None`: the configuration has no such section.
    pub(super) fn check_sections(&self) -> Option<Check> {
        let policies = self.policies.all().into_iter().map(|(section, _)| section);
        let sinks = self.oplog.sinks.all().into_iter().map(|(section, _)| section);
        let sections: Vec<Section> = policies.chain(sinks).collect();
        let wrong = sections.iter().find_map(|section| Some((section, self.lacks(section)?)));
        match (sections.as_slice(), wrong) {
            ([], _) => None,
            (_, Some((Section { name, company, .. }, found))) => {
                let advice = format!(
                    "make it, such as with `memhost binding create --company {company}`, or \
                     correct `[{name}]` in the configuration file and restart this host"
                );
                let unnamed = format!("`[{name}]` names what is not there");
                Some(Check::warning(NAME, format!("`[{name}]`: {found}"), advice).unnamed(unnamed))
            }
            (_, None) => Some(Check::ok(NAME, "each section's binding is there")),
        }
    }

    /// What is missing of the company and the binding of a section.
    fn lacks(&self, Section { company, binding, .. }: &Section) -> Option<String> {
        let bindings = self.bindings.list(company);
        match binding {
            _ if bindings.is_empty() => Some(format!("the company `{company}` has no binding")),
            Some(key) if !bindings.iter().any(|binding| binding.key == *key) => {
                Some(format!("the company `{company}` has no binding `{key}`"))
            }
            None if self.bindings.resolve(company, None, None).is_err() => {
                Some(format!("it names no binding, and the company `{company}` has no default one"))
            }
            _ => None,
        }
    }
}

//! Checks that the companies and bindings exist that the configuration of systems in front names.

use std::sync::Arc;

use super::{Check, MetricSource, Monitor};
use memhost_access::Section;

/// The name of the check of sections.
const NAME: &str = "integrations";

impl Monitor {
    /// From here on the metrics have figures of a section.
    pub fn attach_metrics(&self, section: Section, source: Arc<dyn MetricSource>) {
        self.metric_sources.attach(section, source);
    }

    /// Warns of a section that names a company or a binding which is not there: its routes answer
    /// 404. `None`: the configuration has no such section.
    pub(super) fn check_sections(&self, beside: &[Arc<Self>]) -> Option<Check> {
        let (mut sections, mut wrong) = (Vec::new(), None);
        for one in self.with(beside) {
            let policies = one.policies.all().into_iter().map(|(section, _)| section);
            let sinks = one.oplog.sinks.all().into_iter().map(|(section, _)| section);
            // Each is checked at the home of its company.
            let at_home = |section: &Section| one.store.is_home(&section.company);
            for section in policies.chain(sinks).filter(at_home) {
                if let Some(found) = one.lacks(&section).filter(|_| wrong.is_none()) {
                    wrong = Some((section.clone(), found));
                }
                sections.push(section);
            }
        }
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

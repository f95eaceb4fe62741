//! Whether the systems in front that the configuration names find their company and binding.

use crate::Service;
use crate::host::check::Check;
use memhost_types::{BindingKey, CompanyId};

const NAME: &str = "integrations";

impl Service {
    /// Warns of a section that names a company or a binding which is not there: its routes answer
    /// 404. None where the configuration has no such section.
    pub(super) fn check_integrations(&self) -> Option<Check> {
        let facts = self
            .recorder
            .facts
            .lock()
            .owners
            .as_ref()
            .map(|of| (of.company.clone(), of.binding.clone()));
        let projects = self
            .recorder
            .projects
            .read()
            .as_ref()
            .map(|of| (of.company.clone(), of.binding.clone()));
        let sections = [("pagespace", facts), ("apropos", projects)];
        let sections: Vec<_> =
            sections.into_iter().filter_map(|(name, of)| Some((name, of?))).collect();
        let wrong = sections.iter().find_map(|(name, (company, binding))| {
            Some((name, company, self.lacks(company, binding.as_ref())?))
        });
        match (sections.as_slice(), wrong) {
            ([], _) => None,
            (_, Some((name, company, found))) => {
                let advice = format!(
                    "make it, such as with `memhost binding create --company {company}`, or \
                     correct \
                     `[integrations.{name}]` in the configuration file and restart this host"
                );
                let unnamed = format!("`[integrations.{name}]` names what is not there");
                Some(
                    Check::warning(NAME, format!("`[integrations.{name}]`: {found}"), advice)
                        .unnamed(unnamed),
                )
            }
            (_, None) => Some(Check::ok(NAME, "each section's binding is there")),
        }
    }

    /// What is missing of a company and a binding.
    fn lacks(&self, company: &CompanyId, binding: Option<&BindingKey>) -> Option<String> {
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

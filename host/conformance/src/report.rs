//! The report of a check: as JSON for programs, as JUnit XML for continuous integration, as a badge
//! for a README.

use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::rule::{Mode, Rule};
use super::selection::Selection;
use super::{CheckError, rules};
use memhost_sandbox::Inspection;
use memhost_types::{Digest, Permission, ProviderKey};

/// The outcome of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The rule passed.
    Passed,
    /// The rule failed.
    Failed {
        /// The actual result.
        saw: String,
    },
    /// The rule could not be tested.
    Skipped {
        /// Why.
        why: String,
    },
}

/// One rule and its outcome.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The duration of the test.
    #[serde(rename = "ms", serialize_with = "serialize_ms")]
    pub took: Duration,
}

/// The overall status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No rule failed.
    Passed,
    /// A rule failed.
    Failed,
    /// No rule failed, but no rule about writing could be tested, so the result means nothing.
    Inconclusive,
}

/// The number of rules for each outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[allow(missing_docs, reason = "the outcomes' names")]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

/// The report of a check.
#[derive(Debug, Clone)]
pub struct Report {
    /// The provider and its version, if it was admitted.
    pub provider: Option<(ProviderKey, semver::Version)>,
    /// The digest of the component's bytes, if it was admitted.
    pub digest: Option<Digest>,
    /// Whether it asks for an origin.
    pub wants_network: bool,
    /// The mode of the check.
    pub mode: Mode,
    /// The overall status.
    pub status: Status,
    /// In the order of the rules.
    pub findings: Vec<Finding>,
    /// The duration of the whole check.
    pub took: Duration,
}

impl Report {
    pub(super) fn new(
        inspection: Option<&Inspection>,
        selection: &Selection,
        findings: Vec<Finding>,
        took: Duration,
    ) -> Self {
        let is = |wanted: &dyn Fn(&Finding) -> bool| findings.iter().any(wanted);
        let status = if is(&|finding| matches!(finding.outcome, Outcome::Failed { .. })) {
            Status::Failed
        } else if is(&|finding| {
            let counts = !selection.rules.is_empty() || rules::is_about_writing(&finding.rule);
            counts && finding.outcome == Outcome::Passed
        }) {
            Status::Passed
        } else {
            Status::Inconclusive
        };
        let provider = inspection.map(|known| {
            let description = &known.description;
            (description.provider_key.clone(), description.version.clone())
        });
        let digest = inspection.map(|known| known.digest);
        let wants_network = inspection.is_some_and(|known| {
            known
                .description
                .permissions
                .iter()
                .any(|asked| matches!(asked.permission, Permission::Http(_)))
        });
        Self { provider, digest, wants_network, mode: selection.mode, status, findings, took }
    }

    /// The number of rules for each outcome.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for finding in &self.findings {
            match finding.outcome {
                Outcome::Passed => counts.passed += 1,
                Outcome::Failed { .. } => counts.failed += 1,
                Outcome::Skipped { .. } => counts.skipped += 1,
            }
        }
        counts
    }

    /// The provider and its version, or `not admitted`.
    pub fn name(&self) -> String {
        match &self.provider {
            Some((key, version)) => format!("{key} {version}"),
            None => "not admitted".to_owned(),
        }
    }

    /// The report as JSON. Members are only added within a version of the contract.
    pub fn to_json(&self) -> Value {
        json!({
            "provider": self.provider.as_ref().map(|(key, _)| key),
            "version": self.provider.as_ref().map(|(_, version)| version),
            "digest": self.digest,
            "contract": env!("CARGO_PKG_VERSION"),
            "mode": self.mode,
            "status": self.status,
            "counts": self.counts(),
            "ms": millis(self.took),
            "rules": self.findings,
        })
    }

    /// The report as JUnit XML: one test case for each rule.
    ///
    /// # Errors
    /// Where the XML cannot be written.
    pub fn to_junit(&self) -> Result<String, CheckError> {
        let name = format!("memhost plugin check {}", self.name());
        let mut suite = TestSuite::new(name.as_str());
        suite.set_time(self.took);
        suite.add_test_cases(self.findings.iter().map(test_case));
        let mut report = quick_junit::Report::new(name.as_str());
        report.set_time(self.took);
        report.add_test_suite(suite);
        report.to_string().map_err(|error| CheckError::Report(error.to_string()))
    }

    /// The badge as JSON for `https://img.shields.io/endpoint`.
    pub fn to_badge(&self) -> Value {
        let Counts { passed, failed, .. } = self.counts();
        let (message, color) = match self.status {
            Status::Passed => (format!("{passed} rules"), "brightgreen"),
            Status::Failed => (format!("{failed} of {} broken", passed + failed), "red"),
            Status::Inconclusive => ("inconclusive".to_owned(), "lightgrey"),
        };
        let label = format!(
            "{} {}",
            self.contract(),
            if self.mode == Mode::Thorough { "thorough" } else { "quick" }
        );
        json!({ "schemaVersion": 1, "label": label, "message": message, "color": color })
    }

    /// The badge as one line of Markdown.
    pub fn badge_line(&self) -> String {
        let badge = self.to_badge();
        let part = |name: &str| {
            let text =
                badge[name].as_str().unwrap_or_default().replace('-', "--").replace('_', "__");
            percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC)
                .to_string()
        };
        let (label, message, color) = (part("label"), part("message"), part("color"));
        format!("![{}](https://img.shields.io/badge/{label}-{message}-{color})", self.name())
    }

    fn contract(&self) -> String {
        format!("paperclip:memory {}", env!("CARGO_PKG_VERSION"))
    }
}

/// The source in the contract, in one line.
pub(super) fn place(rule: &Rule) -> String {
    let contract = &rule.contract;
    format!("{}, {}: \"{}\"", contract.file, contract.item, contract.text)
}

fn serialize_ms<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(millis(*duration))
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e4).round() / 10.0
}

fn test_case(finding: &Finding) -> TestCase {
    let rule = &finding.rule;
    let status = match &finding.outcome {
        Outcome::Passed => TestCaseStatus::success(),
        Outcome::Skipped { why } => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(why.as_str());
            status
        }
        Outcome::Failed { saw } => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(saw.as_str()).set_description(format!(
                "expects: {}\n{}",
                rule.expects,
                place(rule)
            ));
            status
        }
    };
    let mut case = TestCase::new(format!("{} {}", rule.id, rule.title), status);
    case.set_classname(rule.id.split('-').next().unwrap_or_default());
    case.set_time(finding.took);
    case
}

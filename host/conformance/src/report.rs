//! What came of a check: for programs as JSON, for continuous integration as JUnit's XML, for a README as a badge.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::kit::Selection;
use super::rule::{Mode, Rule};
use super::rules;
use memhost_sandbox::Inspection;
use memhost_types::{Digest, ProviderKey};

/// How one rule came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The provider keeps it.
    Passed,
    /// The provider breaks it.
    Failed {
        /// What was seen instead of what the rule expects.
        saw: String,
    },
    /// It could not be tried.
    Skipped {
        /// Why.
        why: String,
    },
}

/// One rule and how it came out.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How it came out.
    pub outcome: Outcome,
    /// How long that took.
    pub took: Duration,
}

/// The whole of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// No rule is broken.
    Passed,
    /// Some rule is broken.
    Failed,
    /// No rule is broken, and none about writing could be tried: that says nothing.
    Inconclusive,
}

impl Status {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// How many rules came out how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the outcomes' names")]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

/// What came of a check.
#[derive(Debug, Clone)]
pub struct Report {
    /// The provider and its version, if it was admitted.
    pub provider: Option<(ProviderKey, semver::Version)>,
    /// Of the component's bytes, if it was admitted.
    pub digest: Option<Digest>,
    /// Which rules were asked for.
    pub mode: Mode,
    /// The whole of it.
    pub status: Status,
    /// In the order of the rules.
    pub findings: Vec<Finding>,
    /// How long all of it took.
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
        Self { provider, digest, mode: selection.mode, status, findings, took }
    }

    /// How many rules came out how.
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

    /// The provider and its version, or that there is none.
    pub fn name(&self) -> String {
        match &self.provider {
            Some((key, version)) => format!("{key} {version}"),
            None => "not admitted".to_owned(),
        }
    }

    /// The report as JSON. Members are only added within a version of the contract.
    pub fn to_json(&self) -> Value {
        let Counts { passed, failed, skipped } = self.counts();
        let finding = |finding: &Finding| {
            let (outcome, saw) = match &finding.outcome {
                Outcome::Passed => ("passed", None),
                Outcome::Failed { saw } => ("failed", Some(saw)),
                Outcome::Skipped { why } => ("skipped", Some(why)),
            };
            let rule = &finding.rule;
            let mut json = json!({
                "id": rule.id, "title": rule.title, "outcome": outcome, "expects": rule.expects,
                "contract": rule.contract, "mode": rule.mode, "ms": millis(finding.took),
            });
            if let Some(interface) = rule.interface {
                json["interface"] = interface.name().into();
            }
            if let Some(saw) = saw {
                json[if outcome == "failed" { "saw" } else { "why" }] = saw.as_str().into();
            }
            json
        };
        json!({
            "provider": self.provider.as_ref().map(|(key, _)| key),
            "version": self.provider.as_ref().map(|(_, version)| version),
            "digest": self.digest,
            "contract": env!("CARGO_PKG_VERSION"),
            "mode": self.mode,
            "status": self.status.as_str(),
            "counts": { "passed": passed, "failed": failed, "skipped": skipped },
            "ms": millis(self.took),
            "rules": self.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }

    /// The report in the XML that systems of continuous integration read: one case a rule.
    pub fn to_junit(&self) -> String {
        let Counts { passed, failed, skipped } = self.counts();
        let name = escape(&format!("memhost plugin check {}", self.name()));
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\" errors=\"0\" time=\"{:.3}\">\n",
            passed + failed + skipped,
            self.took.as_secs_f64()
        );
        for finding in &self.findings {
            let rule = &finding.rule;
            let within = match &finding.outcome {
                Outcome::Passed => String::new(),
                Outcome::Skipped { why } => format!("<skipped message=\"{}\"/>", escape(why)),
                Outcome::Failed { saw } => format!(
                    "<failure message=\"{}\">{}</failure>",
                    escape(saw),
                    escape(&format!("expects: {}\n{}", rule.expects, place(rule)))
                ),
            };
            // Writing to a text does not fail.
            let _ = writeln!(
                xml,
                "    <testcase classname=\"{}\" name=\"{} {}\" time=\"{:.3}\">{within}</testcase>",
                rule.id.split('-').next().unwrap_or_default(),
                rule.id,
                escape(rule.title),
                finding.took.as_secs_f64()
            );
        }
        xml.push_str("  </testsuite>\n</testsuites>\n");
        xml
    }

    /// What `https://img.shields.io/endpoint` reads.
    pub fn to_badge(&self) -> Value {
        let Counts { passed, failed, .. } = self.counts();
        let (message, color) = match self.status {
            Status::Passed => (format!("{passed} rules"), "brightgreen"),
            Status::Failed => (format!("{failed} of {} broken", passed + failed), "red"),
            Status::Inconclusive => ("inconclusive".to_owned(), "lightgrey"),
        };
        let label = format!("{} {}", self.contract(), if self.mode == Mode::Thorough { "thorough" } else { "quick" });
        json!({ "schemaVersion": 1, "label": label, "message": message, "color": color })
    }

    /// The badge as one line of Markdown.
    pub fn badge_line(&self) -> String {
        let badge = self.to_badge();
        let part = |name: &str| {
            let text = badge[name].as_str().unwrap_or_default().replace('-', "--").replace('_', "__");
            percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC).to_string()
        };
        let (label, message, color) = (part("label"), part("message"), part("color"));
        format!("![{}](https://img.shields.io/badge/{label}-{message}-{color})", self.name())
    }

    fn contract(&self) -> String {
        format!("paperclip:memory {}", env!("CARGO_PKG_VERSION"))
    }
}

/// Where the contract says it, in one line.
pub(super) fn place(rule: &Rule) -> String {
    let contract = &rule.contract;
    format!("{}, {}: \"{}\"", contract.file, contract.item, contract.text)
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e4).round() / 10.0
}

/// A text in XML. What XML cannot say at all is left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

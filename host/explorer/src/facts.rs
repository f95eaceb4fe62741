//! PageSpace's facts of a user, of a drive and of the company: what is in every context of theirs,
//! adding a fact, removing one or all. They are the facts of the routes, under the same rules.

use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::components::{
    CompanyView, CsrfForm, FilterForm, Page, QueryParams, Row, View, confirm, empty, form, panel,
    query, sentence, table, time, unix_lines, unprocessable, whole,
};
use super::guard::redirect;
use memhost_http::{Problem, ProblemCode, permission};
use memhost_integrations::{
    Fact, FactOwner, FactSource, Facts, MAX_FACT_CHARS, PageSpaceOptions, own_user,
};
use memhost_types::OperationKind;

/// Rows of one list. PageSpace allows fifty, but a list may have been written with a higher limit.
const MOST_SHOWN: usize = 200;

/// Which of the lists a form is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Whose {
    User,
    Drive,
    /// Nobody's, and in everybody's context.
    Company,
}

impl Whose {
    fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Drive => "drive",
            Self::Company => "company",
        }
    }
}

/// The fields of the page and of its forms. A page shows the facts of a user, of a drive, or what a
/// chat of that user in that drive has.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FactsFields {
    user: Option<String>,
    drive: Option<String>,
    /// The list that a form is about.
    whose: Option<Whose>,
    /// The sentence to add.
    fact: Option<String>,
    /// The fact to remove.
    id: Option<String>,
}

/// The values of a refused form, to show it again: the list, the sentence and the reason.
type Refused<'a> = (Whose, &'a str, &'a str);

/// The owners that a page names.
struct Shown<'a> {
    view: &'a View,
    options: &'a PageSpaceOptions,
    user: Option<String>,
    drive: Option<String>,
}

impl<'a> Shown<'a> {
    /// The caller's own facts where the token is for one user, and those that the address names.
    fn new(view: &'a View, fields: &FactsFields) -> Result<Self, Problem> {
        let missing = || {
            let detail = "this company has no facts of PageSpace; `[integrations.pagespace]` in \
                          the host's configuration names the company that has";
            Problem::new(ProblemCode::NotFound, detail)
        };
        let options = view.pagespace().ok_or_else(missing)?;
        let user = fields.user.clone().or_else(|| own_user(&view.caller));
        Ok(Self { view, options, user, drive: fields.drive.clone() })
    }

    fn facts(&self, whose: Whose) -> Result<Option<Facts>, Problem> {
        let owner = match whose {
            Whose::User => self.user.clone().map(FactOwner::User),
            Whose::Drive => self.drive.clone().map(FactOwner::Drive),
            Whose::Company => Some(FactOwner::Company),
        };
        owner
            .map(|owner| Facts::of(&self.view.service, &self.view.caller, self.options, owner))
            .transpose()
    }

    /// The list that a form is about.
    fn of_form(&self, fields: &FactsFields) -> Result<(Whose, Facts), Problem> {
        let missing = |name: &str| Problem::invalid(format!("{name} is missing")).at(name);
        let whose = fields.whose.ok_or_else(|| missing("whose"))?;
        Ok((whose, self.facts(whose)?.ok_or_else(|| missing(whose.as_str()))?))
    }

    /// An address with the owners of this page.
    fn at(&self, parts: &[&str], rest: &[(&str, &str)]) -> String {
        let owners = [("user", self.user.as_deref()), ("drive", self.drive.as_deref())];
        let rest = rest.iter().map(|(name, value)| (*name, Some(*value)));
        format!("{}{}", self.view.at(parts), query(owners.into_iter().chain(rest)))
    }

    fn hidden(&self, whose: Whose) -> Markup {
        html! {
            @if let Some(user) = &self.user { input type="hidden" name="user" value=(user); }
            @if let Some(drive) = &self.drive { input type="hidden" name="drive" value=(drive); }
            input type="hidden" name="whose" value=(whose.as_str());
        }
    }

    /// Back to the list that was changed.
    fn back(&self, whose: Whose) -> Response {
        redirect(&format!("{}#{}-facts", self.at(&["facts"], &[]), whose.as_str()))
    }
}

pub(super) async fn list(
    view: CompanyView<permission::List>,
    params: QueryParams<FactsFields>,
) -> Result<Response, Problem> {
    let shown = Shown::new(&view, &params.query)?;
    Ok(page(&shown, Some(&params), None).await?.into_response())
}

async fn page(
    shown: &Shown<'_>,
    params: Option<&QueryParams<FactsFields>>,
    refused: Option<Refused<'_>>,
) -> Result<Markup, Problem> {
    let mut lists = Vec::new();
    for whose in [Whose::User, Whose::Drive, Whose::Company] {
        if let Some(facts) = shown.facts(whose)? {
            let refused = refused.filter(|(of, ..)| *of == whose);
            lists.push(section(shown, whose, &facts, &facts.list().await?, refused));
        }
    }
    let view = shown.view;
    let body = html! {
        @if let Some(params) = params {
            @let filter = FilterForm::new(view, params).submit("Show");
            @let filter = if own_user(&view.caller).is_none() {
                filter.text("user", "User")
            } else { filter };
            (filter.text("drive", "Drive"))
        }
        @if shown.user.is_none() && shown.drive.is_none() {
            (empty("No user or drive is named", &html! {
                "Enter the ID of a user, of a drive, or both to see what every chat of theirs has."
            }))
        }
        @for list in &lists { (list) }
    };
    let about =
        "Short sentences that are in every context: of a user, of a drive's members, of everybody.";
    Ok(Page::new(view, "Facts", about).render(&body))
}

fn section(
    shown: &Shown<'_>,
    whose: Whose,
    facts: &Facts,
    all: &[Fact],
    refused: Option<Refused<'_>>,
) -> Markup {
    let (title, owner) = match whose {
        Whose::User => ("About the user", &shown.user),
        Whose::Drive => ("About the drive", &shown.drive),
        Whose::Company => ("Of the company", &None),
    };
    let title = format!("{title} {}", owner.as_deref().unwrap_or_default()).trim_end().to_owned();
    let may_remove = facts.allows(OperationKind::Forget);
    let rows = all.iter().take(MOST_SHOWN).map(|fact| row(shown, whose, fact, may_remove));
    let body = html! {
        @if whose == Whose::Company {
            p.about { "They name no user and no drive: everybody has them in every context." }
        }
        @if all.is_empty() { p.soft { "No facts." } } @else { (table(&title, rows)) }
        @if all.len() > MOST_SHOWN {
            p.soft { "The first " (MOST_SHOWN) " of " (all.len()) ". The route lists all." }
        }
        @if facts.allows(OperationKind::RecordUpsert) { (add_form(shown, whose, refused)) }
        @if may_remove && !all.is_empty() {
            div.actions {
                a.button href=(shown.at(&["facts", "clear"], &[("whose", whose.as_str())])) {
                    "Clear all" span.vh { " facts of the " (whose.as_str()) }
                }
            }
        }
    };
    panel(&format!("{}-facts", whose.as_str()), &title, &body)
}

fn row(shown: &Shown<'_>, whose: Whose, fact: &Fact, may_remove: bool) -> Row {
    let view = shown.view;
    let source = match fact.source.as_deref() {
        Some("ai") => "AI",
        _ => "person",
    };
    let row = Row::new().key(&fact.id).cell(whole("Fact"), fact.fact.as_str());
    let row = match &fact.created_by {
        Some(by) => row.maybe("Added by", by.as_deref()),
        None => row,
    };
    let row =
        row.cell("Source", source).maybe("Added", fact.created_at.map(|at| time(at, view.now)));
    if !may_remove {
        return row;
    }
    let delete = html! {
        (shown.hidden(whose))
        input type="hidden" name="id" value=(fact.id);
        button { "Delete" span.vh { " " (fact.fact) } }
    };
    row.cell("Actions", form(view, &view.at(&["facts", "delete"]), &delete))
}

fn add_form(shown: &Shown<'_>, whose: Whose, refused: Option<Refused<'_>>) -> Markup {
    let (id, text) =
        (format!("in-{}-fact", whose.as_str()), refused.map_or("", |(_, text, _)| text));
    let help = format!("{id}-help");
    let fields = html! {
        (shown.hidden(whose))
        div.field {
            label for=(id) { "New fact about the " (whose.as_str()) }
            input #(id) name="fact" value=(text) required maxlength=(MAX_FACT_CHARS)
                autocomplete="off"
                aria-describedby=(help);
            p.help #(help) { "One sentence, 1 to " (MAX_FACT_CHARS) " characters." }
        }
        button.primary { "Add" span.vh { " fact about the " (whose.as_str()) } }
    };
    html! {
        @if let Some((.., why)) = refused { p.wrong role="alert" { "Not added. " (sentence(why)) } }
        (form(shown.view, &shown.view.at(&["facts"]), &fields))
    }
}

pub(super) async fn add(
    view: CompanyView<permission::RecordUpsert>,
    CsrfForm(given): CsrfForm<FactsFields>,
) -> Result<Response, Problem> {
    let shown = Shown::new(&view, &given)?;
    let (whose, facts) = shown.of_form(&given)?;
    let fact = unix_lines(given.fact.as_deref().unwrap_or_default());
    // Whoever types it here is a person.
    let by = own_user(&view.caller).unwrap_or_else(|| view.caller.principal().to_string());
    match facts.add(&fact, Some(FactSource::User), Some(by)).await {
        Ok(_) => {
            view.flash("Added. It is in every context from now on.");
            Ok(shown.back(whose))
        }
        Err(problem) if matches!(problem.status(), 400 | 422 | 507) => {
            Ok(unprocessable(&page(&shown, None, Some((whose, &fact, problem.detail()))).await?))
        }
        Err(problem) => Err(problem),
    }
}

pub(super) async fn delete(
    view: CompanyView<permission::Forget>,
    CsrfForm(given): CsrfForm<FactsFields>,
) -> Result<Response, Problem> {
    let shown = Shown::new(&view, &given)?;
    let (whose, facts) = shown.of_form(&given)?;
    let missing = || Problem::invalid("id is missing").at("id");
    facts.remove(given.id.as_deref().ok_or_else(missing)?).await?;
    view.flash("Deleted. Agents no longer get it.");
    Ok(shown.back(whose))
}

/// Asks first: removing all cannot be undone.
pub(super) async fn ask_clear(
    view: CompanyView<permission::Forget>,
    params: QueryParams<FactsFields>,
) -> Result<Markup, Problem> {
    let shown = Shown::new(&view, &params.query)?;
    let (whose, facts) = shown.of_form(&params.query)?;
    if !facts.allows(OperationKind::Forget) {
        let detail = "only an administrator or the owner of a drive may remove a drive's facts";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    }
    let all = facts.list().await?;
    let mut hidden = vec![("whose", whose.as_str())];
    hidden.extend(shown.user.as_deref().map(|user| ("user", user)));
    hidden.extend(shown.drive.as_deref().map(|drive| ("drive", drive)));
    let back = shown.at(&["facts"], &[]);
    let body = html! {
        (panel("what", "Facts", &html! {
            @if all.is_empty() { p.soft { "No facts." } }
            ul.list { @for fact in &all { li { (fact.fact) } } }
        }))
        p.about { "Agents no longer get these " (all.len()) " facts. This cannot be undone." }
        (confirm(&view, &view.at(&["facts", "clear"]), "Clear all facts", &hidden, &back))
    };
    Ok(Page::new(&view, "Clear all facts?", "").crumb("Facts", back).render(&body))
}

pub(super) async fn clear(
    view: CompanyView<permission::Forget>,
    CsrfForm(given): CsrfForm<FactsFields>,
) -> Result<Response, Problem> {
    let shown = Shown::new(&view, &given)?;
    let (whose, facts) = shown.of_form(&given)?;
    let removed = facts.clear().await?;
    view.flash(format!("Removed {removed} {}.", if removed == 1 { "fact" } else { "facts" }));
    Ok(shown.back(whose))
}

//! The frame of every page: head, navigation, title and description.

use maud::{DOCTYPE, Markup, html};

use super::view::{Theme, View};
use crate::assets;
use memhost_core::Act;
use memhost_types::OperationKind::{self, List};

/// The viewers that see a page in the navigation.
#[derive(Clone, Copy)]
enum Audience {
    /// Callers who may do this in the company.
    Act(Act),
    /// Operators of the host.
    Host,
    /// Readers of the company that has facts of PageSpace.
    Facts,
}

/// A group of the navigation: its name, and for each page the label, the path and who sees it.
type Group = (&'static str, &'static [(&'static str, &'static str, Audience)]);

const VIEW: Audience = Audience::Act(Act::View);

/// The pages of a company. A path is below the company's own.
const COMPANY: &[Group] = &[
    (
        "Memory",
        &[
            ("Overview", "", VIEW),
            ("Operations", "operations", VIEW),
            ("Records", "records", Audience::Act(Act::Operate(List))),
            ("Facts", "facts", Audience::Facts),
            ("Query", "query", Audience::Act(Act::Operate(OperationKind::Query))),
            ("Browse", "browse", Audience::Act(Act::Operate(OperationKind::Browse))),
        ],
    ),
    (
        "Work",
        &[("Jobs", "jobs", VIEW), ("Review queue", "reviews", VIEW), ("Hooks", "hooks", VIEW)],
    ),
    ("Configuration", &[("Bindings", "bindings", VIEW), ("Tokens", "tokens", VIEW)]),
    (
        "Costs and audit",
        &[
            ("Costs", "costs", VIEW),
            ("Outgoing requests", "outgoing", VIEW),
            ("Activity", "activity", VIEW),
            ("Events", "events", VIEW),
        ],
    ),
];

/// The pages of the host.
const HOST: &[Group] = &[(
    "Host",
    &[
        ("Companies", "/", Audience::Host),
        ("Plugins", "/plugins", Audience::Host),
        ("Operator tokens", "/tokens", Audience::Host),
    ],
)];

/// A page behind the sign-in.
pub(crate) struct Page<'a> {
    view: &'a View,
    title: &'a str,
    about: &'a str,
    crumbs: Vec<(String, String)>,
    action: Option<Markup>,
    live: Option<String>,
}

impl<'a> Page<'a> {
    /// A page with its title and a sentence that describes it.
    pub(crate) fn new(view: &'a View, title: &'a str, about: &'a str) -> Self {
        Self { view, title, about, crumbs: Vec::new(), action: None, live: None }
    }

    /// Adds a breadcrumb, from the top down.
    pub(crate) fn crumb(mut self, name: impl Into<String>, href: impl Into<String>) -> Self {
        self.crumbs.push((name.into(), href.into()));
        self
    }

    /// The main actions of the page.
    pub(crate) fn action(mut self, action: Markup) -> Self {
        self.action = Some(action);
        self
    }

    /// Parts of the page that have an id and `data-live` are kept up to date when something of
    /// these kinds happens: `operations`, `jobs`, `plugins`, `budgets`, separated by commas.
    pub(crate) fn live(mut self, kinds: &str) -> Self {
        self.live = self
            .view
            .company
            .as_ref()
            .map(|_| format!("{}?kinds={kinds}", self.view.at(&["live"])));
        self
    }

    /// The HTML of the page.
    pub(crate) fn render(self, body: &Markup) -> Markup {
        let view = self.view;
        let said = view.explorer.messages.take(view.session);
        let main = html! {
            header.bar {
                a.brand href="/" { (mark()) "memhost" }
                @if let Some(company) = &view.company {
                    a.company href=(view.at(&[])) { (company) }
                }
                nav #nav aria-label="Main" {
                    @if view.company.is_some() { (groups(view, COMPANY)) }
                    (groups(view, HOST))
                }
                (who(view))
            }
            main #main tabindex="-1" data-live-at=[&self.live] {
                div.head {
                    div {
                        @if !self.crumbs.is_empty() {
                            nav.crumbs aria-label="Breadcrumb" {
                                ol {
                                    @for (name, href) in &self.crumbs {
                                        li { a href=(href) { (name) } }
                                    }
                                }
                            }
                        }
                        h1 { (self.title) }
                        @if !self.about.is_empty() { p.about { (self.about) } }
                    }
                    div.actions {
                        @if self.live.is_some() {
                            button.live type="button" data-live-switch aria-pressed="true"
                                hidden { "Live" }
                        }
                        @if let Some(action) = &self.action { (action) }
                    }
                }
                @if let Some(said) = said { p.flash role="status" data-flash { (said) } }
                (body)
            }
        };
        document(
            view.theme,
            self.title,
            view.company.as_ref().map(|company| company.as_str()),
            &main,
        )
    }
}

/// A page for a visitor who is not signed in.
pub(crate) fn bare(title: &str, body: &Markup) -> Markup {
    document(
        Theme::System,
        title,
        None,
        &html! {
            main.bare #main tabindex="-1" { div.brand { (mark()) "memhost" } h1 { (title) } (body) }
        },
    )
}

fn document(theme: Theme, title: &str, company: Option<&str>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme.as_str()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) @if let Some(company) = company { " · " (company) } " · memhost" }
                link rel="icon" href=(assets::address("icon.svg")) type="image/svg+xml";
                link rel="stylesheet" href=(assets::address("explorer.css"));
                script src=(assets::address("explorer.js")) defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (body)
            }
        }
    }
}

fn groups(view: &View, groups: &[Group]) -> Markup {
    let may = |who: &Audience| match who {
        Audience::Act(act) => view.allows(*act),
        Audience::Host => view.caller.may(Act::Host, None).is_ok(),
        Audience::Facts => view.pagespace().is_some() && view.allows(Act::Operate(List)),
    };
    html! {
        @for (name, pages) in groups {
            @let pages: Vec<_> = pages.iter().filter(|(_, _, who)| may(who)).collect();
            @if !pages.is_empty() {
                div.group {
                    p { (name) }
                    ul {
                        @for (name, path, _) in pages {
                            @let href = match *path {
                                "" => view.at(&[]),
                                path if path.starts_with('/') => path.to_owned(),
                                path => view.at(&[path]),
                            };
                            li { a href=(href) aria-current=[current(view, &href)] { (name) } }
                        }
                    }
                }
            }
        }
    }
}

/// The value of `aria-current`: `page` for this page, `true` for a page above this one.
fn current(view: &View, href: &str) -> Option<&'static str> {
    let below = view.path.strip_prefix(href)?;
    match below {
        "" => Some("page"),
        // Pages below these two have their own links.
        _ if href == "/" || href == view.at(&[]) => None,
        _ => below.starts_with('/').then_some("true"),
    }
}

/// The theme, the signed-in caller, and the sign-out button.
fn who(view: &View) -> Markup {
    let here = |label: &str, value: &str, is_on: bool| {
        html! {
            button name="theme" value=(value) aria-pressed=(is_on) { (label) }
        }
    };
    html! {
        div.who {
            form.theme method="post" action="/theme" aria-label="Theme" {
                input type="hidden" name="csrf" value=(view.csrf);
                input type="hidden" name="back" value=(view.path);
                @for (label, theme) in [
                    ("Auto", Theme::System), ("Light", Theme::Light), ("Dark", Theme::Dark),
                ] { (here(label, theme.as_str(), view.theme == theme)) }
            }
            form.out method="post" action="/sign-out" {
                input type="hidden" name="csrf" value=(view.csrf);
                span.name title={ "Signed in as " (view.caller.principal()) }
                { (view.caller.principal()) }
                button { "Sign out" }
            }
        }
    }
}

/// The logo.
fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 16 16" aria-hidden="true" {
            rect x="1" y="1" width="14" height="14" rx="4" fill="none" stroke="currentColor"
                stroke-width="1.5" {}
            rect x="5" y="5" width="6" height="6" rx="1.5" fill="currentColor" {}
        }
    }
}

/// Tabs. `here` is the path of the current page below the company.
pub(crate) fn tabs(view: &View, here: &str, pages: &[(&str, &str)]) -> Markup {
    html! {
        nav.tabs aria-label="Section" {
            @for (path, name) in pages {
                a href=(view.at(&[path]))
                    aria-current=[(*path == here).then_some("page")] { (name) }
            }
        }
    }
}

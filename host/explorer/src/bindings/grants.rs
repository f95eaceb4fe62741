//! The permissions that a provider requests and has, and granting or revoking them.

use std::collections::BTreeMap;
use std::mem::discriminant;

use axum::response::Response;
use maud::{Markup, html};

use crate::components::{
    CompanyView, CsrfForm, Row, Tone, View, badge, bytes, form, long, table, wide,
};
use crate::guard::redirect;
use memhost_core::{Act, AskedView, GrantsView};
use memhost_http::{PathParam, Problem, ProblemCode, parse, permission};
use memhost_types::{
    AskedOrigin, Binding, BindingKey, Grants, HttpGrant, HttpPermission, Permission,
    PermissionRequest,
};

/// A permission as a person reads it.
pub(crate) fn permission_text(permission: &Permission) -> String {
    match permission {
        Permission::Storage(size) => format!("storage of {}", bytes(*size)),
        Permission::Directory(size) => format!("a directory of {}", bytes(*size)),
        other => other.to_string(),
    }
}

/// How much of what is asked for is granted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coverage {
    No,
    Partly,
    Yes,
}

fn coverage(granted: &Grants, request: &PermissionRequest) -> Coverage {
    let asked = Grants::all_of(std::slice::from_ref(request));
    let mut effective = granted.effective(std::slice::from_ref(request));
    effective.http.iter_mut().for_each(|http| http.private_ranges.clear());
    let covers = match &request.permission {
        Permission::Storage(size) => effective.storage_bytes >= *size,
        Permission::Directory(size) => effective.directory_bytes >= *size,
        // A permission that cannot be granted is never covered.
        _ => effective == asked && asked != Grants::default(),
    };
    match (covers, effective == Grants::default()) {
        (true, _) => Coverage::Yes,
        (false, true) => Coverage::No,
        (false, false) => Coverage::Partly,
    }
}

/// The grant in place of the request, if it differs.
fn instead(granted: &Grants, request: &PermissionRequest) -> Option<String> {
    match &request.permission {
        Permission::Storage(asked) if ![0, *asked].contains(&granted.storage_bytes) => {
            Some(bytes(granted.storage_bytes))
        }
        Permission::Directory(asked) if ![0, *asked].contains(&granted.directory_bytes) => {
            Some(bytes(granted.directory_bytes))
        }
        Permission::Http(http) => {
            let grant =
                granted.http.iter().find(|grant| Some(&grant.origin) == http.origin.fixed())?;
            (grant.methods != http.methods || !grant.private_ranges.is_empty())
                .then(|| http_text(grant))
        }
        _ => None,
    }
}

fn http_text(grant: &HttpGrant) -> String {
    let methods =
        if grant.methods.is_empty() { "every method".to_owned() } else { grant.methods.join(", ") };
    match grant.private_ranges.is_empty() {
        true => format!("HTTP {methods} to {}", grant.origin),
        false => {
            let ranges: Vec<_> = grant.private_ranges.iter().map(ToString::to_string).collect();
            format!("HTTP {methods} to {}, also at {}", grant.origin, ranges.join(", "))
        }
    }
}

/// The permissions that are granted and not requested.
fn others(granted: &Grants, asked: &[AskedView]) -> Vec<Permission> {
    let http = granted.http.iter().map(|grant| {
        let (origin, methods) = (AskedOrigin::Fixed(grant.origin.clone()), grant.methods.clone());
        Permission::Http(HttpPermission { origin, methods })
    });
    let all = [
        (granted.storage_bytes > 0).then_some(Permission::Storage(granted.storage_bytes)),
        (granted.directory_bytes > 0).then_some(Permission::Directory(granted.directory_bytes)),
        granted.embeddings.then_some(Permission::Embeddings),
        granted.clock.then_some(Permission::Clock),
    ];
    let secrets = granted.secrets.iter().cloned().map(Permission::Secret);
    let is_asked = |permission: &Permission| {
        asked.iter().any(|asked| match (permission, &asked.request.permission) {
            (Permission::Http(one), Permission::Http(other)) => {
                one.origin.fixed() == other.origin.fixed()
            }
            (Permission::Secret(one), Permission::Secret(other)) => one == other,
            (one, other) => discriminant(one) == discriminant(other),
        })
    };
    let all = all.into_iter().flatten().chain(http).chain(secrets);
    all.filter(|permission| !is_asked(permission)).collect()
}

/// A granted permission as a person reads it.
fn granted_text(granted: &Grants, permission: &Permission) -> String {
    let Permission::Http(http) = permission else { return permission_text(permission) };
    let grant = granted.http.iter().find(|grant| Some(&grant.origin) == http.origin.fixed());
    grant.map_or_else(|| permission_text(permission), http_text)
}

/// The requested and the granted permissions, as a form if the caller may change them.
pub(super) fn shown(view: &View, binding: &Binding, asks: &GrantsView) -> Markup {
    let others = others(&asks.granted, &asks.asked);
    if asks.asked.is_empty() && others.is_empty() {
        return html! {
            p.soft { "It requests no permissions and has none. It cannot reach anything outside of \
                      its sandbox." }
        };
    }
    let may = view.allows(Act::Grant);
    let asked = asks.asked.iter().map(|asked| {
        let now = coverage(&asks.granted, &asked.request);
        let row = Row::new()
            .key(&asked.summary)
            .cell("Permission", permission_text(&asked.request.permission))
            .cell("Status", state(now, asked.is_reviewed))
            .cell(wide("Required"), if asked.request.optional { "no" } else { "yes" })
            .cell(
                long("Reason"),
                html! {
                    (asked.request.reason)
                    @if let Some(asked) = &asked.configured_by {
                        " The address is in the configuration: " code { (asked) } "."
                    }
                },
            );
        let choice = || choice(asked, now, instead(&asks.granted, &asked.request).as_deref());
        if may { row.cell("Decision", choice()) } else { row }
    });
    let rows = asked.chain(others.iter().map(|permission| {
        let what = granted_text(&asks.granted, permission);
        let row = Row::new()
            .key(&what)
            .cell("Permission", what.as_str())
            .cell("Status", badge(Tone::Warning, "granted, not requested"))
            .cell(wide("Required"), "no")
            .cell(long("Reason"), "");
        let choice = html! {
            select name={ "other " (permission) } aria-label={ "Decision about " (what) } {
                option value="now" { "Keep" }
                option value="no" { "Revoke" }
            }
        };
        if may { row.cell("Decision", choice) } else { row }
    }));
    let asker = asks
        .version
        .as_ref()
        .map_or_else(|| "No build".to_owned(), |version| format!("Version {version}"));
    let body = html! {
        p.soft {
            (asker)
            " requests these permissions. The provider cannot use anything that is not granted."
        }
        (table("Permissions", rows))
        @if may {
            input type="hidden" name="revision" value=(binding.revision);
            div.actions { button.primary { "Save permissions" } }
        } @else { p.help { "Only an operator of the host can change permissions." } }
    };
    match may {
        true => {
            html! {
                div.wideform {
                    (form(view, &view.at(&["bindings", binding.key.as_str(), "grants"]), &body))
                }
            }
        }
        false => body,
    }
}

fn state(now: Coverage, is_reviewed: bool) -> Markup {
    html! {
        @match now {
            Coverage::Yes => (badge(Tone::Good, "granted")),
            Coverage::Partly => (badge(Tone::Warning, "granted in part")),
            Coverage::No => (badge(Tone::Plain, "not granted")),
        }
        @if !is_reviewed { " " span.tag { "new" } }
    }
}

fn choice(asked: &AskedView, now: Coverage, instead: Option<&str>) -> Markup {
    html! {
        @let permission = permission_text(&asked.request.permission);
        select name={ "asked " (asked.summary) } aria-label={ "Decision about " (permission) } {
            option value="no" selected[now == Coverage::No] { "Deny" }
            option value="asked" selected[now == Coverage::Yes && instead.is_none()] { "Grant" }
            @if let Some(instead) = instead { option value="now" selected { "Keep " (instead) } }
            @else if now == Coverage::Partly { option value="now" selected { "Keep as it is" } }
        }
    }
}

/// The grants after a decision. None: the provider now requests something else than the form
/// showed.
fn decided(given: &BTreeMap<String, String>, view: &GrantsView) -> Option<Grants> {
    let mut after = Grants::default();
    for asked in &view.asked {
        let decision = given.get(&format!("asked {}", asked.summary))?;
        if decision != "no" {
            let kept = (decision == "now").then_some(&view.granted);
            grant(&mut after, &asked.request.permission, kept);
        }
    }
    for permission in others(&view.granted, &view.asked) {
        if given.get(&format!("other {permission}")).is_none_or(|decision| decision != "no") {
            grant(&mut after, &permission, Some(&view.granted));
        }
    }
    Some(after)
}

/// Grants a permission as it is requested, or as `kept` has it.
fn grant(after: &mut Grants, permission: &Permission, kept: Option<&Grants>) {
    match permission {
        Permission::Storage(size) => {
            after.storage_bytes = kept.map_or(*size, |kept| kept.storage_bytes);
        }
        Permission::Directory(size) => {
            after.directory_bytes = kept.map_or(*size, |kept| kept.directory_bytes);
        }
        Permission::Embeddings => after.embeddings = true,
        Permission::Clock => after.clock = true,
        Permission::Secret(name) => after.secrets.push(name.clone()),
        Permission::Http(http) => {
            // Nothing can be granted where the configuration gives no address.
            let Some(origin) = http.origin.fixed() else { return };
            match kept {
                Some(kept) => {
                    let same = kept.http.iter().filter(|grant| grant.origin == *origin);
                    after.http.extend(same.cloned());
                }
                None => after.http.push(HttpGrant {
                    origin: origin.clone(),
                    methods: http.methods.clone(),
                    private_ranges: Vec::new(),
                }),
            }
        }
        Permission::Other(_) => {}
    }
}

pub(crate) async fn set(
    view: CompanyView<permission::Grant>,
    PathParam(key): PathParam<BindingKey>,
    CsrfForm(given): CsrfForm<BTreeMap<String, String>>,
) -> Result<Response, Problem> {
    let revision = parse("revision", given.get("revision").map_or("", String::as_str))?;
    let asks = view.service.control().grants(&view.company, &key).await?;
    let changed = || {
        let detail = "the provider now requests other permissions; reload the page of the binding \
                      and decide again";
        Problem::new(ProblemCode::Conflict, detail)
    };
    let grants = decided(&given, &asks).ok_or_else(changed)?;
    view.service
        .control()
        .set_grants(&view.caller, &view.company, &key, Some(revision), grants)
        .await?;
    view.flash("The permissions are saved. They apply to the next call.");
    Ok(redirect(&format!("{}#grants", view.at(&["bindings", key.as_str()]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(granted: Grants, permissions: &[Permission]) -> GrantsView {
        let asked = permissions.iter().map(|permission| AskedView {
            summary: permission.to_string(),
            configured_by: None,
            is_reviewed: true,
            request: PermissionRequest {
                permission: permission.clone(),
                reason: String::new(),
                optional: true,
            },
        });
        GrantsView { granted, asked: asked.collect(), requested: None, version: None }
    }

    #[test]
    fn a_decision_changes_what_it_is_about_and_nothing_else() {
        let before = Grants {
            storage_bytes: 10,
            clock: true,
            secrets: vec!["OLD".to_owned()],
            ..Grants::default()
        };
        let view = asks(before, &[Permission::Storage(100), Permission::Embeddings]);
        let given = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let (storage, embeddings) = ("asked storage of 100 bytes", "asked embeddings");
        let after = decided(&given(&[(storage, "asked"), (embeddings, "no")]), &view).unwrap();
        assert_eq!(
            (after.storage_bytes, after.embeddings, after.clock, after.secrets.len()),
            (100, false, true, 1)
        );
        let after = decided(
            &given(&[(storage, "now"), (embeddings, "asked"), ("other the secret `OLD`", "no")]),
            &view,
        )
        .unwrap();
        assert_eq!((after.storage_bytes, after.embeddings, after.secrets.len()), (10, true, 0));
        assert!(
            decided(&given(&[(storage, "asked")]), &view).is_none(),
            "nobody saw that it asks for embeddings"
        );
    }

    #[test]
    fn less_than_what_is_asked_is_a_part_of_it() {
        let view = asks(
            Grants { storage_bytes: 10, ..Grants::default() },
            &[Permission::Storage(100), Permission::Clock],
        );
        let standings: Vec<_> =
            view.asked.iter().map(|asked| coverage(&view.granted, &asked.request)).collect();
        assert!(standings == [Coverage::Partly, Coverage::No]);
    }
}

//! `memhost binding grant`: the permissions of a binding's provider.

use clap::Args;
use serde_json::json;

use crate::answer::Answer;
use crate::args::CompanyArgs;
use crate::argument::{addresses, bytes};
use crate::output::table;
use crate::texts::{escape, text};
use crate::{CliError, Result};
use memhost_core::{AskedView, BindingView, GrantsView};
use memhost_types::{Grants, HttpGrant, IpNet, Origin, Permission};

#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// Binding key.
    key: String,
    #[command(flatten)]
    company: CompanyArgs,
    /// Grant every requested permission.
    #[arg(long, conflicts_with = "none")]
    everything: bool,
    /// Accept the grants and limits that an import asked for.
    #[arg(long, conflicts_with_all = ["everything", "none"])]
    requested: bool,
    /// Revoke every grant.
    #[arg(long)]
    none: bool,
    /// Storage quota in bytes, or with a unit such as 64MiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes, id = "storageBytes")]
    storage: Option<u64>,
    /// Quota of the private directory in bytes, or with a unit such as 1GiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes, id = "directoryBytes")]
    directory: Option<u64>,
    /// Allow embeddings.
    #[arg(long, value_name = "BOOL")]
    embeddings: Option<bool>,
    /// Allow the exact time instead of steps of 100 milliseconds.
    #[arg(long, value_name = "BOOL")]
    clock: Option<bool>,
    /// Allow HTTP requests to this origin, such as 'https://api.example.com'; repeatable.
    #[arg(long, value_name = "ORIGIN", id = "http|http.origin")]
    http: Vec<Origin>,
    /// With --http: allow only this method; repeatable.
    #[arg(long, requires = "http|http.origin", value_name = "METHOD", id = "http.methods")]
    method: Vec<String>,
    /// With --http, or with --everything where that is one origin: allow connections to this
    /// private address range, such as 10.0.0.0/8; repeatable.
    #[arg(
        long, value_name = "CIDR", value_parser = addresses, id = "http.privateRanges"
    )]
    private_range: Vec<IpNet>,
    /// Allow this secret; repeatable.
    #[arg(long, value_name = "NAME", id = "secrets")]
    secret: Vec<String>,
    /// Show the change without making it.
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn grant(args: GrantArgs) -> Result<()> {
    let session = args.company.open().await?;
    let path = format!("bindings/{}/grants", escape(&args.key));
    let answer = session.get(&path).await?;
    let before: GrantsView = answer.read()?;
    let Some(wanted) = wanted(&args, &before)? else {
        session.show_list(&answer, |before: &GrantsView| diff(before, &before.granted))?;
        if let Some(requested) = &before.requested {
            let requested = text(requested);
            session.say(&format!(
                "\nan import asks for more; accept it with --requested: {requested}"
            ))?;
        }
        return session.say("\ngrant all with --everything, or some with the flags of --help");
    };
    if args.dry_run {
        return session.tell(&wanted, || diff(&before, &wanted));
    }
    if let Some(requested) = before.requested.as_ref().filter(|_| args.requested) {
        let binding = session.path(&format!("bindings/{}", escape(&args.key)));
        let limits = json!({ "limits": requested.limits });
        let _: Answer<BindingView> = session.host.patch(&binding, &limits).await?;
    }
    let answer = session.put(&path, &wanted).await?;
    session.show_list(&answer, |answer: &GrantsView| diff(&before, &answer.granted))
}

/// The grants to set. `None`: no flag sets any.
fn wanted(args: &GrantArgs, before: &GrantsView) -> Result<Option<Grants>> {
    let ranges = &args.private_range;
    let lists = !args.http.is_empty() || !args.secret.is_empty() || !ranges.is_empty();
    let numbers = args.storage.is_some() || args.directory.is_some();
    let switches = args.embeddings.is_some() || args.clock.is_some();
    if !(args.everything || args.none || args.requested || lists || numbers || switches) {
        return Ok(None);
    }
    let mut grants = match (args.everything, args.none) {
        _ if args.requested => {
            let requested = before.requested.as_ref().ok_or_else(|| {
                CliError::input(
                    "--requested",
                    "an import asked for nothing that waits for a decision",
                )
            })?;
            requested.grants.clone()
        }
        (true, _) => {
            let asked: Vec<_> = before.asked.iter().map(|asked| asked.request.clone()).collect();
            Grants::all_of(&asked)
        }
        (_, true) => Grants::default(),
        _ => before.granted.clone(),
    };
    grants.storage_bytes = args.storage.unwrap_or(grants.storage_bytes);
    grants.directory_bytes = args.directory.unwrap_or(grants.directory_bytes);
    grants.embeddings = args.embeddings.unwrap_or(grants.embeddings);
    grants.clock = args.clock.unwrap_or(grants.clock);
    for origin in &args.http {
        let (methods, private_ranges) = (args.method.clone(), args.private_range.clone());
        let grant = HttpGrant { origin: origin.clone(), methods, private_ranges };
        // A new grant for an origin replaces the old one.
        grants.http.retain(|before| before.origin != grant.origin);
        grants.http.push(grant);
    }
    match grants.http.as_mut_slice() {
        _ if ranges.is_empty() || !args.http.is_empty() => {}
        // One address is meant.
        [only] => {
            let new = ranges.iter().filter(|range| !only.private_ranges.contains(range));
            let new: Vec<IpNet> = new.copied().collect();
            only.private_ranges.extend(new);
        }
        _ => return Err(whose_ranges(ranges, before)),
    }
    grants.secrets.retain(|name| !args.secret.contains(name));
    grants.secrets.extend_from_slice(&args.secret);
    Ok(Some(grants))
}

/// The error of private ranges that could belong to several addresses, or to none.
fn whose_ranges(ranges: &[IpNet], before: &GrantsView) -> CliError {
    let asked = before.asked.iter().find_map(|asked| match &asked.request.permission {
        Permission::Http(http) => http.origin.fixed().map(ToString::to_string),
        _ => None,
    });
    let message = match (asked, ranges.first()) {
        (Some(origin), Some(range)) => {
            format!("belongs to an address: write `--http {origin} --private-range {range}`")
        }
        _ => "belongs to an address, and the provider asks for none; leave it out".to_owned(),
    };
    CliError::input("--private-range", message)
}

/// The requested permissions, with the old and the new grants.
fn diff(before: &GrantsView, after: &Grants) -> String {
    if before.asked.is_empty() {
        return "the provider requests no permissions".to_owned();
    }
    let row = |asked: &AskedView| {
        let request = &asked.request;
        let optional = if request.optional { "works without" } else { "needs it" };
        let (was, now) =
            (granted(&before.granted, &request.permission), granted(after, &request.permission));
        let change = if was == now { now } else { format!("{was} → {now}") };
        vec![asked.summary.clone(), request.reason.clone(), optional.to_owned(), change]
    };
    let rows = before.asked.iter().map(row).collect();
    let table = table(&["permission", "reason", "", "granted"], rows);
    let is_asked = |is_it: &dyn Fn(&Permission) -> bool| {
        before.asked.iter().any(|asked| is_it(&asked.request.permission))
    };
    let is_asked_origin = |origin: &Origin| {
        is_asked(&|asked| match asked {
            // A wildcard may cover it; only the host can decide that.
            Permission::Http(http) => {
                let asked = http.origin.to_string();
                asked == origin.to_string() || asked.contains("*.")
            }
            _ => false,
        })
    };
    let is_asked_secret = |name: &String| {
        is_asked(&|asked| matches!(asked, Permission::Secret(asked) if asked == name))
    };
    let origins = after.http.iter().map(|grant| &grant.origin);
    let origins = origins.filter(|origin| !is_asked_origin(origin)).map(ToString::to_string);
    let secrets = after.secrets.iter().filter(|name| !is_asked_secret(name)).cloned();
    let unasked: Vec<String> = origins.chain(secrets).collect();
    if unasked.is_empty() {
        return table;
    }
    format!("{table}\n\ngranted but not requested, so unused: {}", unasked.join(", "))
}

fn granted(grants: &Grants, asked: &Permission) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let bytes = |bytes: u64| match bytes {
        0 => "no".to_owned(),
        bytes => format!("{bytes} bytes"),
    };
    match asked {
        Permission::Storage(_) => bytes(grants.storage_bytes),
        Permission::Directory(_) => bytes(grants.directory_bytes),
        Permission::Embeddings => yes(grants.embeddings),
        Permission::Clock => yes(grants.clock),
        Permission::Http(http) => {
            let asked = http.origin.to_string();
            yes(grants.http.iter().any(|grant| grant.origin.to_string() == asked))
        }
        Permission::Secret(name) => yes(grants.secrets.contains(name)),
        Permission::Other(_) => String::new(),
    }
}

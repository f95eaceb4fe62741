//! `memhost binding grant`: the permissions of a binding's provider.

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::CliError;
use crate::args::CompanyArgs;
use crate::argument::{addresses, bytes};
use crate::output::{escape, table, text};
use memhost_types::{Grants, HttpGrant, IpNet, Origin, PermissionRequest};

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
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    storage: Option<u64>,
    /// Quota of the private directory in bytes, or with a unit such as 1GiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    directory: Option<u64>,
    /// Allow embeddings.
    #[arg(long, value_name = "BOOL")]
    embeddings: Option<bool>,
    /// Allow the exact time instead of steps of 100 milliseconds.
    #[arg(long, value_name = "BOOL")]
    clock: Option<bool>,
    /// Allow HTTP requests to this origin, such as 'https://api.example.com'; repeatable.
    #[arg(long, value_name = "ORIGIN")]
    http: Vec<Origin>,
    /// With --http: allow only this method; repeatable.
    #[arg(long, requires = "http", value_name = "METHOD")]
    method: Vec<String>,
    /// With --http: allow connections to this private address range, such as 10.0.0.0/8;
    /// repeatable.
    #[arg(long, requires = "http", value_name = "CIDR", value_parser = addresses)]
    private_range: Vec<IpNet>,
    /// Allow this secret; repeatable.
    #[arg(long, value_name = "NAME")]
    secret: Vec<String>,
    /// Show the change without making it.
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn grant(args: GrantArgs) -> Result<(), CliError> {
    let session = args.company.open().await?;
    let path = format!("bindings/{}/grants", escape(&args.key));
    let before = session.get(&path).await?;
    let Some(wanted) = wanted(&args, &before)? else {
        session.show(&before, "asked", |before| diff(before, &before["granted"]))?;
        if let Some(requested) = before.get("requested") {
            session.say(&format!(
                "\nan import asks for more; accept it with --requested: {requested}"
            ))?;
        }
        return session.say("\ngrant all with --everything, or some with the flags of --help");
    };
    let wanted = serde_json::to_value(wanted).map_err(CliError::host)?;
    if args.dry_run {
        return session.show(&wanted, "", |wanted| diff(&before, wanted));
    }
    if args.requested {
        let limits = json!({ "limits": before["requested"]["limits"] });
        session
            .host
            .patch(&session.path(&format!("bindings/{}", escape(&args.key))), &limits)
            .await?;
    }
    let answer = session.put(&path, &wanted).await?;
    session.show(&answer, "asked", |answer| diff(&before, &answer["granted"]))
}

/// The grants to set; none where no flag sets any.
fn wanted(args: &GrantArgs, before: &Value) -> Result<Option<Grants>, CliError> {
    let lists = !args.http.is_empty() || !args.secret.is_empty();
    let numbers = args.storage.is_some() || args.directory.is_some();
    let switches = args.embeddings.is_some() || args.clock.is_some();
    if !(args.everything || args.none || args.requested || lists || numbers || switches) {
        return Ok(None);
    }
    let mut grants = match (args.everything, args.none) {
        _ if args.requested => {
            let requested = before.get("requested").ok_or_else(|| {
                CliError::input(
                    "--requested",
                    "an import asked for nothing that waits for a decision",
                )
            })?;
            Grants::deserialize(&requested["grants"]).map_err(CliError::host)?
        }
        (true, _) => Grants::all_of(
            &Vec::<PermissionRequest>::deserialize(&before["asked"]).map_err(CliError::host)?,
        ),
        (_, true) => Grants::default(),
        _ => Grants::deserialize(&before["granted"]).map_err(CliError::host)?,
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
    grants.secrets.retain(|name| !args.secret.contains(name));
    grants.secrets.extend_from_slice(&args.secret);
    Ok(Some(grants))
}

/// The requested permissions, with the old and the new grants.
fn diff(before: &Value, after: &Value) -> String {
    let row = |asked: &Value| {
        let optional = if asked["optional"] == true { "works without" } else { "needs it" };
        let (was, now) = (granted(&before["granted"], asked), granted(after, asked));
        let change = if was == now { now } else { format!("{was} → {now}") };
        vec![text(asked, "/summary"), text(asked, "/reason"), optional.to_owned(), change]
    };
    let asked = before["asked"].as_array().cloned().unwrap_or_default();
    if asked.is_empty() {
        return "the provider requests no permissions".to_owned();
    }
    let table = table(&["permission", "reason", "", "granted"], asked.iter().map(row).collect());
    let is_asked = |kind: &str, detail: &Value| {
        asked
            .iter()
            .map(|asked| &asked["permission"])
            .any(|it| it["kind"] == kind && it["detail"] == *detail)
    };
    let is_asked_origin = |origin: &Value| {
        let details = asked.iter().map(|asked| &asked["permission"]["detail"]["origin"]);
        // A wildcard may cover it; only the host can decide that.
        details.into_iter().any(|asked| {
            asked == origin || asked.as_str().is_some_and(|asked| asked.contains("*."))
        })
    };
    let list = |name: &str| after[name].as_array().cloned().unwrap_or_default();
    let origins = list("http")
        .iter()
        .map(|grant| grant["origin"].clone())
        .filter(|origin| !is_asked_origin(origin))
        .collect();
    let secrets: Vec<Value> =
        list("secrets").into_iter().filter(|name| !is_asked("secret", name)).collect();
    let unasked: Vec<String> =
        [origins, secrets].concat().iter().map(|value| text(value, "")).collect();
    if unasked.is_empty() {
        return table;
    }
    format!("{table}\n\ngranted but not requested, so unused: {}", unasked.join(", "))
}

fn granted(grants: &Value, asked: &Value) -> String {
    let detail = &asked["permission"]["detail"];
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let bytes = |name: &str| match grants[name].as_u64() {
        None | Some(0) => "no".to_owned(),
        Some(bytes) => format!("{bytes} bytes"),
    };
    let list = |name: &str| grants[name].as_array().cloned().unwrap_or_default();
    match asked["permission"]["kind"].as_str() {
        Some("storage") => bytes("storageBytes"),
        Some("directory") => bytes("directoryBytes"),
        Some(name @ ("embeddings" | "clock")) => yes(grants[name] == true),
        Some("http") => yes(list("http").iter().any(|grant| grant["origin"] == detail["origin"])),
        Some("secret") => yes(list("secrets").contains(detail)),
        _ => String::new(),
    }
}

//! Deciding what the provider of a binding may reach.

use clap::Args;
use serde_json::{Value, json};

use crate::CliError;
use crate::args::CompanyArgs;
use crate::output::{escape, table, text};

#[derive(Debug, Args)]
pub(crate) struct GrantArgs {
    /// Binding key.
    key: String,
    #[command(flatten)]
    company: CompanyArgs,
    /// Grant every requested permission.
    #[arg(long, alias = "all", conflicts_with = "none")]
    everything: bool,
    /// Revoke every grant.
    #[arg(long)]
    none: bool,
    /// Storage quota in bytes.
    #[arg(long, value_name = "BYTES")]
    storage: Option<u64>,
    /// Quota of the private directory in bytes.
    #[arg(long, value_name = "BYTES")]
    directory: Option<u64>,
    /// Allow embeddings.
    #[arg(long, value_name = "BOOL")]
    embeddings: Option<bool>,
    /// Allow the exact time instead of steps of 100 milliseconds.
    #[arg(long, value_name = "BOOL")]
    clock: Option<bool>,
    /// Allow HTTP requests to this origin, such as 'https://api.example.com'; repeatable.
    #[arg(long, value_name = "ORIGIN")]
    http: Vec<String>,
    /// With --http: allow only this method; repeatable.
    #[arg(long, requires = "http", value_name = "METHOD")]
    method: Vec<String>,
    /// With --http: allow connections to this private address range, such as 10.0.0.0/8; repeatable.
    #[arg(long, requires = "http", value_name = "CIDR")]
    private_range: Vec<String>,
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
    let Some(wanted) = wanted(&args, &before) else {
        session.show(&before, "asked", |before| diff(before, &before["granted"]))?;
        return session.say("\ngrant all with --everything, or some with the flags of --help");
    };
    if args.dry_run {
        // What it would be, in the form that the host takes.
        return session.show(&wanted, "", |wanted| diff(&before, wanted));
    }
    let answer = session.put(&path, &wanted).await?;
    session.show(&answer, "asked", |answer| diff(&before, &answer["granted"]))
}

/// The grants to set; none where no flag sets any.
fn wanted(args: &GrantArgs, before: &Value) -> Option<Value> {
    let mut grants = before["granted"].clone();
    let mut is_said = args.everything || args.none;
    if args.none {
        grants = json!({});
    }
    if args.everything {
        grants = json!({ "http": [], "secrets": [] });
        for asked in before["asked"].as_array().into_iter().flatten() {
            let detail = &asked["permission"]["detail"];
            match asked["permission"]["kind"].as_str() {
                Some("storage") => grants["storageBytes"] = detail.clone(),
                Some("directory") => grants["directoryBytes"] = detail.clone(),
                Some("embeddings") => grants["embeddings"] = true.into(),
                Some("clock") => grants["clock"] = true.into(),
                Some("http") => push(&mut grants["http"], detail.clone()),
                Some("secret") => push(&mut grants["secrets"], detail.clone()),
                _ => {}
            }
        }
    }
    for (name, given) in [("storageBytes", args.storage), ("directoryBytes", args.directory)] {
        if let Some(bytes) = given {
            grants[name] = bytes.into();
            is_said = true;
        }
    }
    for (name, given) in [("embeddings", args.embeddings), ("clock", args.clock)] {
        if let Some(is_granted) = given {
            grants[name] = is_granted.into();
            is_said = true;
        }
    }
    for origin in &args.http {
        // Said again, it is meant instead.
        if let Some(before) = grants["http"].as_array_mut() {
            before.retain(|grant| grant["origin"] != origin.as_str());
        }
        let grant = json!({ "origin": origin, "methods": args.method, "privateRanges": args.private_range });
        push(&mut grants["http"], grant);
        is_said = true;
    }
    for name in &args.secret {
        push(&mut grants["secrets"], name.clone().into());
        is_said = true;
    }
    is_said.then_some(grants)
}

fn push(list: &mut Value, value: Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    if let Some(list) = list.as_array_mut().filter(|list| !list.contains(&value)) {
        list.push(value);
    }
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
        return "the provider asks for nothing".to_owned();
    }
    let table = table(&["permission", "reason", "", "granted"], asked.iter().map(row).collect());
    let is_asked = |kind: &str, detail: &Value| {
        asked.iter().map(|asked| &asked["permission"]).any(|it| it["kind"] == kind && it["detail"] == *detail)
    };
    let is_asked_origin = |origin: &Value| {
        let details = asked.iter().map(|asked| &asked["permission"]["detail"]["origin"]);
        // A wildcard may cover it; only the host can tell.
        details.into_iter().any(|asked| asked == origin || asked.as_str().is_some_and(|asked| asked.contains("*.")))
    };
    let list = |name: &str| after[name].as_array().cloned().unwrap_or_default();
    let origins =
        list("http").iter().map(|grant| grant["origin"].clone()).filter(|origin| !is_asked_origin(origin)).collect();
    let secrets: Vec<Value> = list("secrets").into_iter().filter(|name| !is_asked("secret", name)).collect();
    let unasked: Vec<String> = [origins, secrets].concat().iter().map(|value| text(value, "")).collect();
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

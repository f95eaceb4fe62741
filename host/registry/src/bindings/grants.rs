//! The rules of grants: which of them are valid, which a provider asks for, and which it lacks.

use crate::plugins::Build;
use memhost_types::{
    AskedOrigin, Binding, FieldError, Grants, JsonObject, Permission, PermissionRequest,
    ProviderKey,
};

/// Checks the form of grants.
///
/// # Errors
/// The first field that is not valid.
pub fn check_grants(grants: &Grants) -> Result<(), FieldError> {
    const MOST: usize = memhost_types::limits::MAX_FEW;
    let wrong =
        |field: String, message: String| Err(FieldError::new(format!("grants.{field}"), message));
    for (name, count) in [("http", grants.http.len()), ("secrets", grants.secrets.len())] {
        if count > MOST {
            return wrong(
                name.to_owned(),
                format!("has {count} entries; at most {MOST} are allowed"),
            );
        }
    }
    for (index, http) in grants.http.iter().enumerate() {
        if http.methods.len() > MOST {
            let message = format!("has {} entries; at most {MOST} are allowed", http.methods.len());
            return wrong(format!("http.{index}.methods"), message);
        }
        if let Some(method) =
            http.methods.iter().find(|method| !is_token(method, |byte| byte.is_ascii_uppercase()))
        {
            let shown = method.chars().take(64).collect::<String>();
            let message =
                format!("has `{}`; give methods in capitals, such as GET", shown.escape_debug());
            return wrong(format!("http.{index}.methods"), message);
        }
        if http.private_ranges.len() > MOST {
            let message =
                format!("has {} entries; at most {MOST} are allowed", http.private_ranges.len());
            return wrong(format!("http.{index}.privateRanges"), message);
        }
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if let Some(index) = grants.secrets.iter().position(|name| !is_token(name, is_name)) {
        let message = "is no name; 1 to 64 letters, digits, `_` and `-` are allowed".to_owned();
        return wrong(format!("secrets.{index}"), message);
    }
    Ok(())
}

/// Refuses a new grant for an address or a secret that the provider does not ask for: no request
/// would ever go there, or have it.
///
/// # Errors
/// The first such address or secret.
pub fn check_asked(
    grants: &Grants,
    (key, build): (&ProviderKey, &impl Build),
    config: &JsonObject,
    before: &Grants,
) -> Result<(), FieldError> {
    let asked = build.requests(config);
    let unasked = |field: String, given: &str, what: &str, all: Vec<String>| {
        let instead = match all.is_empty() {
            true => format!("no {what}; leave it out"),
            false => format!("{}; grant that", all.join(", ")),
        };
        let message = format!("is {given}, and the provider `{key}` asks for {instead}");
        Err(FieldError::new(format!("grants.{field}"), message))
    };
    if let Some((index, grant)) = grants.unasked_origin(&asked, before) {
        let origins = asked.iter().filter_map(|request| match &request.permission {
            Permission::Http(http) => Some(http.origin.to_string()),
            _ => None,
        });
        let given = grant.origin.to_string();
        return unasked(format!("http.{index}.origin"), &given, "address", origins.collect());
    }
    let secrets: Vec<String> = asked
        .into_iter()
        .filter_map(|request| match request.permission {
            Permission::Secret(name) => Some(name),
            _ => None,
        })
        .collect();
    let is_known = |name: &String| secrets.contains(name) || before.secrets.contains(name);
    match grants.secrets.iter().enumerate().find(|(_, name)| !is_known(name)) {
        Some((index, name)) => unasked(format!("secrets.{index}"), name, "secret", secrets),
        None => Ok(()),
    }
}

fn is_token(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}

/// The address that a provider asks for, where the configuration decides it.
pub fn configured(request: &PermissionRequest) -> Option<&AskedOrigin> {
    match &request.permission {
        Permission::Http(http) if http.origin.fixed().is_none() => Some(&http.origin),
        _ => None,
    }
}

/// What the provider lacks, a sentence each: what it cannot do without, and what the configuration
/// says without a grant.
pub fn ungranted(binding: &Binding, build: &impl Build) -> Vec<String> {
    let (key, described) = (&binding.key, build.described_requests());
    let mut all = Vec::new();
    for (request, described) in build.requests(&binding.config).iter().zip(described) {
        let is_granted =
            binding.grants.effective(std::slice::from_ref(request)) != Grants::default();
        match configured(described).map(|asked| (asked, asked.resolve(&binding.config))) {
            _ if is_granted => {}
            Some((asked, Ok(origin))) => all.push(format!(
                "the configuration sends the provider to {origin} (`{asked}`), which is not \
                 granted; \
                 `memhost binding grant {key}` decides"
            )),
            Some((_, Err(wrong))) if !request.optional || !wrong.is_absent => {
                all.push(format!(
                    "the configuration has no address for the provider: `{}` {}",
                    wrong.pointer, wrong.message
                ));
            }
            None if !request.optional => all.push(format!(
                "the provider needs {}, which is not granted; `memhost binding grant {key}` \
                 decides",
                request.permission
            )),
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{FakeBuild, binding};

    fn asking(requests: serde_json::Value) -> FakeBuild {
        FakeBuild { requests: serde_json::from_value(requests).unwrap(), ..FakeBuild::new("1.0.0") }
    }

    fn http(origin: &str, optional: bool) -> serde_json::Value {
        let permission = json!({"kind": "http", "detail": {"origin": origin, "methods": []}});
        json!({"permission": permission, "reason": "its service", "optional": optional})
    }

    fn grants(grants: serde_json::Value) -> Grants {
        serde_json::from_value(grants).unwrap()
    }

    #[test]
    fn the_first_grant_that_is_not_valid_is_named() {
        let many: Vec<String> =
            (0..=memhost_types::limits::MAX_FEW).map(|n| n.to_string()).collect();
        let to = |methods: &[&str]| json!({"origin": "https://a.example", "methods": methods});
        for (given, field) in [
            (json!({"secrets": ["KEY", "K EY"]}), "grants.secrets.1"),
            (json!({"secrets": [""]}), "grants.secrets.0"),
            (json!({"secrets": ["x".repeat(65)]}), "grants.secrets.0"),
            (json!({"secrets": many}), "grants.secrets"),
            (json!({"http": [to(&["GET"]), to(&["get"])]}), "grants.http.1.methods"),
            (json!({"http": [to(&["GET POST"])]}), "grants.http.0.methods"),
        ] {
            assert_eq!(check_grants(&grants(given)).unwrap_err().field, field);
        }
        let valid = json!({"http": [to(&["GET", "PATCH"]), to(&[])], "secrets": ["a-Z_9"]});
        check_grants(&grants(valid)).unwrap();
        check_grants(&Grants::default()).unwrap();
    }

    #[test]
    fn a_message_shows_no_more_of_a_method_than_a_person_reads() {
        let to = json!({"origin": "https://a.example", "methods": ["\u{1b}[0m".repeat(100)]});
        let error = check_grants(&grants(json!({"http": [to]}))).unwrap_err().to_string();
        assert!(error.len() < 600 && !error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn an_address_that_nobody_asks_for_is_not_granted_anew() {
        let key = "mem0".parse().unwrap();
        let granted = grants(json!({"http": [{"origin": "https://b.example"}]}));
        let check = |build: &FakeBuild, before: &Grants| {
            check_asked(&granted, (&key, build), &JsonObject::new(), before)
        };
        let error = check(&asking(json!([http("https://a.example", false)])), &Grants::default());
        let error = error.unwrap_err();
        assert_eq!(error.field, "grants.http.0.origin");
        assert!(error.message.contains("asks for https://a.example; grant that"), "{error}");
        let error = check(&asking(json!([])), &Grants::default()).unwrap_err();
        assert!(error.message.contains("asks for no address"), "{error}");
        let secret = |name| {
            let asked = json!({"permission": {"kind": "secret", "detail": "KEY"}, "reason": "x",
                "optional": false});
            let (build, granted) = (asking(json!([asked])), grants(json!({"secrets": [name]})));
            check_asked(&granted, (&key, &build), &JsonObject::new(), &Grants::default())
        };
        secret("KEY").unwrap();
        let error = secret("NOPE").unwrap_err();
        assert_eq!(error.field, "grants.secrets.0");
        assert!(error.message.contains("is NOPE, and") && error.message.contains("for KEY"));
        // What was granted before may stay, and what is asked for may come.
        check(&asking(json!([])), &granted).unwrap();
        check(&asking(json!([http("https://b.example", true)])), &Grants::default()).unwrap();
    }

    #[test]
    fn what_a_provider_needs_and_lacks_is_said() {
        let mut binding = binding();
        let needs = json!({"permission": {"kind": "clock"}, "reason": "x", "optional": false});
        let build = asking(json!([needs, http("https://a.example", true)]));
        let said = ungranted(&binding, &build);
        assert!(said.len() == 1 && said[0].contains("memhost binding grant a"), "{said:?}");
        binding.grants.clock = true;
        assert!(ungranted(&binding, &build).is_empty());
    }

    #[test]
    fn an_address_of_the_configuration_is_needed_once_it_is_configured() {
        let mut binding = binding();
        let (optional, needed) = (asking(json!([http("{{config:/url}}", true)])), {
            asking(json!([http("{{config:/url}}", false)]))
        });
        assert!(ungranted(&binding, &optional).is_empty(), "it may do without");
        assert!(ungranted(&binding, &needed)[0].contains("no address for the provider: `/url`"));
        binding.config.insert("url".to_owned(), "https://a.example".into());
        for build in [&optional, &needed] {
            let said = ungranted(&binding, build);
            assert!(said[0].contains("sends the provider to https://a.example"), "{said:?}");
        }
        binding.grants = grants(json!({"http": [{"origin": "https://a.example"}]}));
        assert!(ungranted(&binding, &needed).is_empty());
        binding.config.insert("url".to_owned(), "no address".into());
        assert!(ungranted(&binding, &optional)[0].contains("`/url`"), "what is wrong is said");
    }
}

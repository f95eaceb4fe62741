//! Tests of the configuration file.

use super::*;

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    for (given, nearest) in [
        ("require_signature", "require_signatures"),
        ("data-dir", "data_dir"),
        ("Listen", "listen"),
        ("max_memory", "max_memory_bytes"),
        ("plugin_dir", "plugins_dir"),
    ] {
        let error = parse(&format!("{given} = 1")).unwrap_err();
        assert_eq!(error, format!("unknown key `{given}`; did you mean `{nearest}`?"));
    }
}

#[test]
fn an_unknown_key_of_a_table_is_named_with_its_table() {
    let error = parse("listen = \"127.0.0.1:1\"\n[connections]\nmx = 3").unwrap_err();
    assert!(
        error.starts_with("line 3: `connections.mx`: unknown field `mx`, expected one of `max`"),
        "{error}"
    );
    let error = parse("[connections]\nmax = \"many\"").unwrap_err();
    assert!(
        error.starts_with("line 2: `connections.max`: invalid type: string \"many\", expected"),
        "{error}"
    );
    let error = parse("[embeddings.endpoint]\nurl = \"https://a.example/v1\"").unwrap_err();
    assert!(error.contains("`embeddings.endpoint`: missing field `"), "{error}");
}

#[test]
fn a_wrong_value_names_its_line_and_a_value_out_of_range_its_range() {
    let error = parse("listen = \"127.0.0.1:1\"\naudit = \"sometimes\"").unwrap_err();
    assert!(error.contains("line 2") && error.contains("durable"), "{error}");
    let error = parse("instances = 1").unwrap().options(Path::new("d")).err().unwrap().to_string();
    assert!(error.contains("instances") && error.contains("100000"), "{error}");
    let error =
        parse("[connections]\nmax = 1").unwrap().options(Path::new("d")).err().unwrap().to_string();
    assert!(error.contains("connections.max") && error.contains("16"), "{error}");
    let error =
        parse("trusted_keys = [\"x\"]").unwrap().options(Path::new("d")).err().unwrap().to_string();
    assert!(error.contains("trusted_keys.0"), "{error}");
}

#[test]
fn sizes_take_units() {
    let options = parse("store_reserve_bytes = \"64MiB\"\nstore_cache_bytes = 1048576").unwrap();
    let store = options.options(Path::new("d")).unwrap().service.store;
    assert_eq!((store.reserve_bytes, store.cache_bytes), (64 << 20, 1 << 20));
    for wrong in ["\"64 miles\"", "-1", "true"] {
        let error = parse(&format!("max_memory_bytes = {wrong}")).err().unwrap();
        assert!(error.contains("64MiB") || error.contains("256MiB"), "{error}");
    }
}

#[test]
fn a_key_is_added_and_the_rest_stays_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memhost.toml");
    let key: TrustedKey =
        "RWQlD4TehUDCHNF/9AmaUao8z1ePMRZBMZmiUV0h7CwyeE+6SDDEdbse".parse().unwrap();
    assert!(trust(&path, &key).unwrap());
    std::fs::write(
        &path,
        format!(
            "# ours\naudit = \"relaxed\"   # fast\n{}",
            std::fs::read_to_string(&path).unwrap()
        ),
    )
    .unwrap();
    let other: TrustedKey =
        "RWQt4gd9s9h+1GbfDGkWLtSqLY3GXkaI8ZIqo+YmzXUagDZGWc3Rib70".parse().unwrap();
    assert!(trust(&path, &other).unwrap() && !trust(&path, &key).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# ours\naudit = \"relaxed\"   # fast\n"), "{text}");
    let options =
        HostConfig::read("--config", Some(&path)).unwrap().options(Path::new("d")).unwrap().service;
    assert_eq!(options.trust.keys, [key, other]);
}

#[test]
fn other_systems_routes_are_there_where_the_file_names_their_company() {
    let text = "[integrations.pagespace]\ncompany = \"acme\"\nuser \
                = \"namespace\"\n[integrations.apropos]\ncompany = \"b\"";
    let configured = parse(text).unwrap().options(Path::new("d")).unwrap().server.integrations;
    assert_eq!(configured.pagespace.unwrap().user, memhost_integrations::ScopeField::Namespace);
    assert_eq!(configured.apropos.unwrap().company.as_str(), "b");
    assert!(
        parse("").unwrap().options(Path::new("d")).unwrap().server.integrations.apropos.is_none()
    );
    for wrong in [
        "[integrations.pagespace]",
        "[integrations.mem0]\ncompany = \"a\"",
        "[integrations.apropos]\ncompany = \"a/b\"",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn vectors_come_from_the_installed_model_an_endpoint_or_nowhere() {
    let options = |text: &str| {
        parse(text).unwrap().options(Path::new("d")).map(|options| options.service.embeddings)
    };
    assert!(matches!(options(""), Ok(EmbeddingsOptions::Installed)));
    assert!(matches!(options("[embeddings]\noff = true"), Ok(EmbeddingsOptions::Off)));
    let endpoint =
        "[embeddings.endpoint]\nurl = \"https://a.example/v1\"\nmodel = \"m\"\ndimensions = 8\n";
    assert!(matches!(options(endpoint), Ok(EmbeddingsOptions::Endpoint(_))));
    let error =
        options(&format!("{endpoint}key_env = \"MEMHOST_NO_SUCH_KEY\"")).unwrap_err().to_string();
    assert!(
        error.contains("embeddings.endpoint.key_env") && error.contains("MEMHOST_NO_SUCH_KEY"),
        "{error}"
    );
    assert!(
        parse(&format!("{endpoint}key = \"secret\"")).is_err(),
        "a key does not belong into the file"
    );
}

#[test]
fn links_lead_to_web_pages_and_have_a_place_for_the_id() {
    let options = |text: &str| parse(text).unwrap().options(Path::new("d"));
    let links = options("issue_link = \"https://paperclip.example/issues/{issueId}\"")
        .unwrap()
        .server
        .links;
    assert!(links.issue.is_some() && links.run.is_none());
    let error = options("run_link = \"javascript:alert({runId})\"").err().unwrap().to_string();
    assert!(error.contains("run_link"), "{error}");
    assert!(options("run_link = \"https://paperclip.example/{issueId}\"").is_err());
}

#[test]
fn paths_are_relative_to_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("memhost.toml");
    std::fs::write(
        &path,
        "data_dir = \"here\"\nplugins_dir = \"/there\"\nmetrics_company_label = true",
    )
    .unwrap();
    let config = HostConfig::read("--config", Some(&path)).unwrap();
    assert_eq!(config.data_dir.as_deref(), Some(directory.path().join("here").as_path()));
    let options = config.options(Path::new("d")).unwrap().service;
    assert_eq!(options.plugins_dir.as_deref(), Some(Path::new("/there")));
    assert!(options.metrics_company_label);
}

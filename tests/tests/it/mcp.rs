//! Memory over the Model Context Protocol, over real HTTP: which tools a token gets, whose memory
//! they reach, and which operations they leave.

use memhost_types::BindingLimits;
use serde_json::json;

use crate::mcp_http::{ACCEPT, Client, OPERATOR, agent, host, last, token};
use crate::support::Api;

const ALL: [&str; 6] = [
    "memory_search",
    "memory_note",
    "memory_correct",
    "memory_forget",
    "memory_browse",
    "memory_jobs",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tools_depend_on_provider_and_token() {
    let (host, address) = host(&["echo"]).await;
    let agent = agent(&host, address).await;
    assert_eq!(
        agent.tools().await,
        ALL,
        "the built-in provider answers for a company that has no binding yet"
    );
    let auditor = token(&host, "acme", json!({"name": "audit", "role": "auditor"})).await;
    assert_eq!(
        Client::new(address, &auditor).tools().await,
        ["memory_search", "memory_browse", "memory_jobs"]
    );
    let few = json!({
        "name": "few", "role": "agent", "agentId": "ada", "operations": ["query", "correct"],
    });
    let few = Client::new(address, &token(&host, "acme", few).await);
    assert_eq!(few.tools().await, ["memory_search", "memory_correct"]);
    // A token without `list` sees no resources, and a listing by its client is not recorded as a
    // refusal.
    assert_eq!(few.ask("resources/list", json!({})).await["result"]["resources"], json!([]));
    assert_eq!(
        few.ask("resources/templates/list", json!({})).await["result"]["resourceTemplates"],
        json!([])
    );
    assert!(host.operations("acme").await.unwrap().is_empty());
    // A provider without `correction`, `browse` and extraction.
    host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
    assert_eq!(agent.tools().await, ["memory_search", "memory_note", "memory_forget"]);
    let refusal = agent.is_refused("memory_correct", json!({"id": "r", "text": "t"})).await;
    assert!(refusal.starts_with("unsupported: "), "{refusal}");
    assert_eq!(
        (last(&host, "acme").await.kind.as_str(), last(&host, "acme").await.outcome.as_str()),
        ("correct", "refused")
    );
    Api::new(&host).make("zeta").await;
    let operator = Client::new(address, OPERATOR).with("memhost-company-id", "zeta");
    assert_eq!(operator.tools().await, ALL);
    // Names with dots, for clients that ask for them.
    let dotted = agent.with("memhost-tool-names", "dotted");
    assert_eq!(dotted.tools().await, ["memory.search", "memory.note", "memory.forget"]);
    for name in ["memory_search", "memory.search"] {
        for client in [&agent, &dotted] {
            assert_eq!(client.call(name, json!({"query": "x"})).await["isError"], false, "{name}");
        }
    }
    let told = dotted.ask("prompts/get", json!({"name": "memory_rules"})).await.to_string();
    assert!(told.contains("`memory.search`") && !told.contains("`memory_search`"), "{told}");
    // The instructions fit what the client may do.
    let told =
        Client::new(address, &auditor).ask("prompts/get", json!({"name": "memory_rules"})).await;
    let rules = told["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(rules.contains("memory_search") && !rules.contains("memory_note"), "{rules}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tool_works_and_leaves_an_operation() {
    let (host, address) = host(&[]).await;
    let agent = agent(&host, address)
        .await
        .with("memhost-run-id", "run-7")
        .with("memhost-issue-id", "issue-3");
    let note = json!({
        "text": "The gate code changes monthly", "summary": "gate", "metadata": {"kind": "fact"},
    });
    let noted = agent.does("memory_note", note).await;
    let (id, uri) =
        (noted["record"]["id"].clone(), noted["record"]["uri"].as_str().unwrap().to_owned());
    let left = async |kind: &str| {
        let operation = last(&host, "acme").await;
        let source = operation.source.unwrap();
        assert_eq!((operation.kind.as_str(), operation.outcome.as_str()), (kind, "succeeded"));
        assert_eq!(operation.principal.to_string(), "agent:ada");
        assert_eq!(operation.scope.agent_id.as_ref().unwrap().as_str(), "ada");
        assert_eq!(operation.scope.run_id.as_deref(), Some("run-7"));
        assert_eq!(
            (source.kind.as_str(), source.external_ref.as_deref()),
            ("manual_note", Some("mcp:claude-code/2.1"))
        );
        assert_eq!(
            (source.run_id.as_deref(), source.issue_id.as_deref()),
            (Some("run-7"), Some("issue-3"))
        );
        operation.id.to_string()
    };
    assert_eq!(noted["operationId"], left("record_upsert").await);
    let found = agent.does("memory_search", json!({"query": "gate code", "maxChars": 100})).await;
    assert_eq!(found["operationId"], left("query").await);
    let record = &found["records"][0];
    assert_eq!((&record["id"], &record["text"]), (&id, &json!("The gate code changes monthly")));
    assert_eq!(
        (&record["source"]["runId"], &record["metadata"]["kind"]),
        (&json!("run-7"), &json!("fact"))
    );
    let cited = json!({"text": "Ask for the code on the first", "citedRecords": [uri]});
    agent.does("memory_note", cited).await;
    left("record_upsert").await;
    assert_eq!(
        last(&host, "acme").await.cited[0].provider_record_id.as_str(),
        id.as_str().unwrap()
    );
    agent.does("memory_browse", json!({})).await;
    left("browse").await;
    let listed = agent.ask("resources/list", json!({})).await;
    left("list").await;
    assert!(
        listed["result"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .any(|resource| resource["uri"] == uri),
        "{listed}"
    );
    let read = agent.ask("resources/read", json!({"uri": uri})).await;
    left("get").await;
    let contents = &read["result"]["contents"][0];
    assert_eq!(
        (&contents["text"], &contents["uri"]),
        (&json!("The gate code changes monthly"), &json!(uri))
    );
    assert_eq!(contents["_meta"]["memhost.dev/record"]["source"]["issueId"], "issue-3");
    let corrected = agent
        .does("memory_correct", json!({"id": uri, "text": "The gate code changes weekly"}))
        .await;
    assert_eq!(corrected["operationId"], left("correct").await);
    let id = corrected["record"]["id"].clone();
    let forgotten = agent.does("memory_forget", json!({"ids": [id, "nothing"]})).await;
    assert_eq!(forgotten["operationId"], left("forget").await);
    assert_eq!(
        (&forgotten["outcomes"][0]["id"], &forgotten["outcomes"][1]["effect"]),
        (&id, &json!("not_found"))
    );
    assert_ne!(forgotten["outcomes"][0]["effect"], "not_found");
    let gone = agent.does("memory_search", json!({"query": "gate code weekly"})).await;
    assert!(gone["records"].as_array().unwrap().iter().all(|record| record["id"] != id), "{gone}");
    // The annotations describe the effect.
    let tools = agent.ask("tools/list", json!({})).await;
    let hints = |name: &str| {
        let tools = tools["result"]["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["annotations"].clone()
    };
    assert_eq!(hints("memory_search")["readOnlyHint"], true);
    assert_eq!(hints("memory_browse")["readOnlyHint"], true);
    for (name, destructive, idempotent) in [
        ("memory_note", false, false),
        ("memory_correct", true, false),
        ("memory_forget", true, true),
    ] {
        let hints = hints(name);
        assert_eq!(hints["readOnlyHint"], false, "{name}");
        assert_eq!(
            (&hints["destructiveHint"], &hints["idempotentHint"]),
            (&json!(destructive), &json!(idempotent))
        );
        assert_eq!(hints["openWorldHint"], false, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scope_comes_from_the_token() {
    let (host, address) = host(&[]).await;
    host.write("other", "the other company's secret plan").await.unwrap();
    let theirs = host.operations("other").await.unwrap().len();
    let ada = agent(&host, address).await;
    // Arguments of a tool cannot set the scope.
    for name in ["companyId", "agentId", "runId", "scope", "bindingKey", "namespace", "subjectId"] {
        for tool in
            ["memory_search", "memory_note", "memory_forget", "memory_correct", "memory_browse"]
        {
            let text = ada.is_refused(tool, json!({name: "other"})).await;
            assert!(
                text.starts_with("invalid_request: ") && text.contains("come from the token"),
                "{tool}: {text}"
            );
        }
    }
    // A header that exceeds the token is refused, and recorded in the token's company.
    let elsewhere = ada.with("memhost-company-id", "other");
    let refusal = elsewhere.is_refused("memory_search", json!({"query": "secret plan"})).await;
    assert!(refusal.starts_with("forbidden: ") && !refusal.contains("secret"), "{refusal}");
    let refused = last(&host, "acme").await;
    assert_eq!((refused.kind.as_str(), refused.outcome.as_str()), ("query", "refused"));
    assert_eq!(refused.source.unwrap().external_ref.as_deref(), Some("mcp:claude-code/2.1"));
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/get"] {
        let answer = elsewhere.ask(method, json!({"name": "memory_rules"})).await;
        let is_nothing = answer["error"]["data"]["code"] == "forbidden"
            || answer["result"]["resources"] == json!([])
            || answer["result"]["resourceTemplates"] == json!([]);
        assert!(is_nothing, "{method}: {answer}");
    }
    let as_bob = ada.with("memhost-agent-id", "bob");
    let refusal = as_bob.is_refused("memory_note", json!({"text": "bob said so"})).await;
    assert!(refusal.contains("scope.agentId"), "{refusal}");
    let in_run = json!({"name": "r", "role": "agent", "agentId": "ada", "runId": "run-1"});
    let in_run = Client::new(address, &token(&host, "acme", in_run).await);
    in_run.does("memory_note", json!({"text": "in its run"})).await;
    assert_eq!(last(&host, "acme").await.scope.run_id.as_deref(), Some("run-1"));
    let refusal = in_run
        .with("memhost-run-id", "run-2")
        .is_refused("memory_note", json!({"text": "x"}))
        .await;
    assert!(refusal.contains("scope.runId"), "{refusal}");
    // The company's memory is shared by its agents. Another company's records are not found, by id
    // or by address.
    let bobs =
        token(&host, "acme", json!({"name": "bob", "role": "agent", "agentId": "bob"})).await;
    let bob = Client::new(address, &bobs);
    let noted = ada.does("memory_note", json!({"text": "ada's own thought"})).await;
    for agent in [&ada, &bob] {
        let found = agent.does("memory_search", json!({"query": "own thought"})).await;
        assert_eq!(found["records"][0]["id"], noted["record"]["id"]);
    }
    let operator = Client::new(address, OPERATOR).with("memhost-company-id", "other");
    let foreign =
        operator.does("memory_search", json!({"query": "secret plan"})).await["records"][0].clone();
    for name in [&foreign["id"], &foreign["uri"]] {
        let outcome =
            bob.does("memory_forget", json!({"ids": [name]})).await["outcomes"][0].clone();
        assert_eq!(outcome["effect"], "not_found", "{foreign}");
        let text = bob.is_refused("memory_correct", json!({"id": name, "text": "mine"})).await;
        assert!(text.starts_with("not_found: "), "{text}");
    }
    let read = bob.ask("resources/read", json!({"uri": foreign["uri"]})).await;
    assert_eq!(read["error"]["code"], -32002, "{read}");
    let log = host.operations("other").await.unwrap();
    assert_eq!(log.len(), theirs + 1, "only the operator left operations there");
    // An operator's token must name the company. The error says how.
    let nobody = Client::new(address, OPERATOR);
    let error = nobody.ask("tools/list", json!({})).await["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("memhost-company-id"), "{error}");
    assert!(
        nobody
            .is_refused("memory_search", json!({"query": "x"}))
            .await
            .contains("memhost-company-id")
    );
    let auditor =
        Client::new(address, &token(&host, "acme", json!({"name": "a", "role": "auditor"})).await);
    let refusal = auditor.is_refused("memory_note", json!({"text": "an auditor writes"})).await;
    assert!(refusal.starts_with("forbidden: "), "{refusal}");
    let refused = last(&host, "acme").await;
    assert_eq!(
        (refused.kind.as_str(), refused.principal.to_string().as_str()),
        ("record_upsert", "auditor:a")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_of_a_binding_enables_the_aliases() {
    let (host, address) = host(&[]).await;
    let operator = Api::new(&host);
    let agent = agent(&host, address).await;
    let path = "/control/v1/companies/acme/bindings";
    let body = json!({"key": "m", "providerKey": "local-markdown", "default": true});
    operator.post(path, &body).await.fine();
    let save = json!({"name": "save_memory", "arguments": {"scope": "user", "fact": "likes tea"}});
    let unknown = agent.ask("tools/call", save.clone()).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(agent.tools().await, ALL);
    operator
        .patch(&format!("{path}/m"), &json!({"policy": {"mcp": {"aliases": true}}}))
        .await
        .fine();
    assert_eq!(agent.tools().await[6..], ["save_memory", "remove_memory"]);
    let agent = agent.with("memhost-subject-id", "user-1").with("memhost-namespace", "drive-1");
    let saved = agent.does("save_memory", save["arguments"].clone()).await;
    let scope = last(&host, "acme").await.scope;
    assert_eq!((scope.subject_id.as_deref(), scope.namespace.as_deref()), (Some("user-1"), None));
    agent.does("save_memory", json!({"scope": "drive", "fact": "builds on Mondays"})).await;
    let scope = last(&host, "acme").await.scope;
    assert_eq!((scope.subject_id.as_deref(), scope.namespace.as_deref()), (None, Some("drive-1")));
    let found = agent.does("memory_search", json!({"query": "tea"})).await;
    assert_eq!(
        found["records"][0]["metadata"],
        json!({"scope": "user", "source": "ai", "userId": "user-1"})
    );
    let found = agent.does("memory_search", json!({"query": "Mondays"})).await;
    assert_eq!(
        found["records"][0]["metadata"],
        json!({"scope": "drive", "source": "ai", "driveId": "drive-1", "createdBy": "ada"})
    );
    let removal = json!({"scope": "user", "factId": saved["factId"]});
    assert_eq!(agent.does("remove_memory", removal.clone()).await["isRemoved"], true);
    assert_eq!(agent.does("remove_memory", removal).await["isRemoved"], false);
    assert_eq!(last(&host, "acme").await.kind.as_str(), "forget");
    // Neither argument reaches beyond the user and the workspace of the client's configuration.
    let other = agent.with("memhost-subject-id", "user-2").with("memhost-namespace", "drive-2");
    for whose in ["user", "drive"] {
        let theirs = other
            .does("save_memory", json!({"scope": whose, "fact": format!("of another {whose}")}))
            .await;
        for scope in ["user", "drive"] {
            let removal = json!({"scope": scope, "factId": theirs["factId"]});
            assert_eq!(
                agent.does("remove_memory", removal).await["isRemoved"],
                false,
                "{scope} for {whose}"
            );
        }
    }
    for (tool, arguments, why) in [
        ("save_memory", json!({"scope": "user", "fact": "x".repeat(201)}), "at most 200"),
        (
            "save_memory",
            json!({"scope": "company", "fact": "x"}),
            "scope: unknown variant `company`, expected `user` or `drive`",
        ),
        ("remove_memory", json!({"scope": "user"}), "factId"),
    ] {
        let text = agent.is_refused(tool, arguments).await;
        assert!(text.contains(why), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_outside_the_protocol_get_http_errors() {
    let (host, address) = host(&[]).await;
    let agent = agent(&host, address).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let nobody = Client { headers: vec![("accept", ACCEPT.to_owned())], ..agent.clone() };
    for client in [&nobody, &nobody.with("authorization", "Bearer mh_made-up-by-somebody")] {
        let answer = client.send("POST", list.clone()).await;
        assert_eq!(
            (answer.status, answer.headers["www-authenticate"].to_str().unwrap()),
            (401, "Bearer")
        );
    }
    for (client, method, body, status, code) in [
        (
            agent.with("origin", "http://evil.example"),
            "POST",
            list.clone(),
            403,
            "origin_not_allowed",
        ),
        (agent.with("accept", "text/html"), "POST", list.clone(), 406, "not_acceptable"),
        (agent.clone(), "POST", "{".to_owned(), 400, "invalid_request"),
        (agent.clone(), "POST", r#"{"jsonrpc":"1.0"}"#.to_owned(), 400, "invalid_request"),
        (agent.clone(), "POST", format!("\"{}\"", "x".repeat(9 << 20)), 413, "body_too_large"),
        (agent.clone(), "POST", format!("[{}1]", "1,".repeat(300_000)), 400, "invalid_request"),
        (agent.clone(), "DELETE", String::new(), 405, "method_not_allowed"),
        (
            agent.with("mcp-protocol-version", "1999-01-01"),
            "POST",
            list.clone(),
            400,
            "invalid_request",
        ),
    ] {
        let answer = client.send(method, body).await;
        assert_eq!(
            (answer.status, &answer.json["code"]),
            (status, &json!(code)),
            "{}",
            answer.json
        );
    }
    let mine = agent.with("origin", "http://localhost:6274").send("POST", list.clone()).await;
    assert_eq!(mine.status, 200);
    // Every revision with a handshake works, without a session.
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}});
        let answer = agent.send("POST", hello.to_string()).await;
        let result = &answer.json["result"];
        assert_eq!(
            (&result["protocolVersion"], &result["serverInfo"]["name"]),
            (&json!(revision), &json!("memhost"))
        );
        assert!(result["instructions"].as_str().unwrap().contains("memory_search"), "{result}");
        assert!(answer.headers.get("mcp-session-id").is_none());
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(agent.send("POST", notification).await.status, 202);
    // A revoked token stops working at once.
    let tokens = Api::new(&host).get("/control/v1/companies/acme/tokens").await;
    let id = tokens["items"][0]["id"].as_str().unwrap();
    let path = format!("/control/v1/companies/acme/tokens/{id}");
    Api::new(&host).send(memhost_server::Method::Delete, &path, None, &[]).await.fine();
    assert_eq!(agent.send("POST", list).await.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_tools_tell_a_model_what_to_do() {
    let (host, address) = host(&["traps"]).await;
    host.bind("acme", "traps", BindingLimits::default()).await.unwrap();
    let agent = agent(&host, address).await;
    let text = agent.is_refused("memory_search", json!({"query": "trap"})).await;
    let operation = last(&host, "acme").await;
    assert!(text.starts_with("trapped: ") && text.contains(&operation.id.to_string()), "{text}");
    assert!(text.ends_with("go on with the task without it, and say so."), "{text}");
    let disabled = json!({"enabled": false});
    Api::new(&host).patch("/control/v1/companies/acme/bindings/traps", &disabled).await.fine();
    let text = agent.is_refused("memory_search", json!({"query": "x"})).await;
    assert!(text.starts_with("binding_disabled: "), "{text}");
    for (arguments, why) in [
        (json!({"query": ""}), "query: is empty"),
        (json!({"query": "x", "topK": 51}), "topK: is 51; 1 to 50 are allowed"),
        (json!({"query": "x", "maxChars": 1}), "maxChars: is 1"),
        (json!({"query": 7}), "query: invalid type: integer `7`, expected a string"),
    ] {
        let text = agent.is_refused("memory_search", arguments).await;
        assert!(
            text.contains(why) && text.ends_with("Correct the arguments and call again."),
            "{text}"
        );
    }
}

/// A call with an idempotency key is done once. The scope of the headers is a part of the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_a_key_is_done_once() {
    let (host, address) = host(&[]).await;
    let client = agent(&host, address).await.with("idempotency-key", "note-1");
    let note = json!({"text": "The gate is green"});
    let first = client.does("memory_note", note.clone()).await;
    let again = client.does("memory_note", note.clone()).await;
    assert_eq!(first, again);
    assert_eq!(host.query("acme", "gate").await.unwrap().len(), 1);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "memory_note", "arguments": note}});
    let other = client.with("memhost-issue-id", "i7").send("POST", body.to_string()).await;
    assert_eq!((other.status, &other.json["code"]), (409, &json!("idempotency_key_reused")));
    let next = client.with("idempotency-key", "note-2").does("memory_note", note).await;
    assert_ne!(next["record"], first["record"]);
}

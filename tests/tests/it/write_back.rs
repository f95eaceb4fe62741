//! Write-back through the shipped hook adapters: a conversation of several turns becomes typed
//! items of its project.

use memhost_tests::{Serving, TestHost};
use serde_json::{Value, json};

use super::agent_hooks::{Machine, settle};
use super::support::Api;

/// A host whose company has Apropos' routes and the provider `cross-agent`, and a machine with the
/// adapters.
async fn machine(config: Value) -> (TestHost, Api, Machine, Serving) {
    let configured =
        serde_json::from_value(json!({"apropos": {"company": "acme", "binding": "shared"}}))
            .unwrap();
    let host = TestHost::new(&["cross-agent"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = configured);
    let api = Api::new(&host);
    for company in ["acme", "zeta"] {
        let binding = json!({
            "key": "shared", "providerKey": "cross-agent", "default": true, "config": config,
            "grants": {"storageBytes": 1 << 24},
        });
        api.post(&format!("/control/v1/companies/{company}/bindings"), &binding).await.fine();
    }
    let mut machine = Machine::new(String::new());
    let serving = Serving::start(&host, &machine.token).await.unwrap();
    serving.url().clone_into(&mut machine.url);
    (host, api, machine, serving)
}

/// One turn: the tool has written it into its transcript and calls its hook at the end.
async fn turn(machine: &Machine, tool: &str, prompt: &str, answer: &str) {
    let line = |role: &str, text: &str| match tool {
        "claude" => {
            json!({"type": role, "promptId": prompt, "message": {"role": role, "content": text}})
        }
        _ => {
            let kind = if role == "user" { "input_text" } else { "output_text" };
            json!({"type": "response_item", "payload": {"type": "message", "role": role,
                "content": [{"type": kind, "text": text}]}})
        }
    };
    // `payload` makes the transcript of the recordings, which is continued.
    let mut payload: Value = serde_json::from_str(&machine.payload(tool, "stop")).unwrap();
    payload["last_assistant_message"] = json!(answer);
    payload[if tool == "claude" { "prompt_id" } else { "turn_id" }] = json!(prompt);
    let transcript = machine.path(&format!("{tool}.jsonl"));
    let mut text = std::fs::read_to_string(&transcript).unwrap();
    text.push_str(&format!("\n{}\n{}\n", line("user", prompt), line("assistant", answer)));
    std::fs::write(&transcript, text).unwrap();
    let called = machine.call(&["agent-hooks", tool], &payload.to_string());
    assert_eq!((called.code, called.errors.as_str()), (Some(0), ""), "{called:?}");
    settle(machine, 0).await;
}

/// The items of the project, as type, kind, agent kind and content.
async fn items(api: &Api) -> Vec<[String; 4]> {
    let page = api.get("/api/projects/widgets/memory?limit=100").await;
    let mut all: Vec<[String; 4]> = Vec::new();
    for item in page["items"].as_array().unwrap() {
        let id = item["id"].as_str().unwrap();
        let get = json!({"scope": {"companyId": "acme", "projectId": "widgets"},
            "handle": {"providerKey": "cross-agent", "providerRecordId": id}});
        let record = api.post("/runtime/v1/companies/acme/get", &get).await.fine();
        let metadata = &record["record"]["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.push([
            text(&item["type"]),
            text(&metadata["kind"]),
            text(&item["agentKind"]),
            text(&item["content"]),
        ]);
        assert_eq!(item["source"], "inferred", "{item}");
        assert!(
            item["sessionId"].is_string() && item["confidence"].as_f64().unwrap() >= 0.5,
            "{item}"
        );
    }
    all.sort();
    all
}

fn row(kind: [&str; 3], content: &str) -> [String; 4] {
    [kind[0], kind[1], kind[2], content].map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_of_several_turns_becomes_typed_items() {
    let (mut host, api, machine, serving) = machine(json!({})).await;
    let said = [
        ("claude", "Why does the parser test fail?", "It expects a comma. I fixed it."),
        (
            "claude",
            "We chose SQLite over Postgres. Please run the tests again.",
            "All 12 pass. I prefer Postgres.",
        ),
        (
            "codex",
            "I prefer concise answers.",
            "Understood. We decided to rewrite everything in Go.",
        ),
        ("codex", "Never commit directly to main.", "I will open pull requests."),
        // Said before, to another tool and with other marks: it is known.
        ("claude", "we chose SQLite over Postgres!", "Yes."),
    ];
    for (tool, prompt, answer) in said {
        turn(&machine, tool, prompt, answer).await;
    }
    let deliveries = "/control/v1/companies/acme/deliveries?hookKind=post_run_capture&limit=100";
    let is_done = |page: &Value| {
        let all = page["items"].as_array().unwrap();
        all.len() == said.len() && all.iter().all(|delivery| delivery["status"] == "delivered")
    };
    api.until(deliveries, is_done).await;
    let wanted = [
        row(["decision", "decision", "claude-code"], "We chose SQLite over Postgres."),
        row(["preference", "constraint", "codex"], "Never commit directly to main."),
        row(["preference", "preference", "codex"], "I prefer concise answers."),
    ];
    assert_eq!(items(&api).await, wanted);
    // Each written item has left its event, with the tool that it came from.
    let events =
        api.get("/control/v1/companies/acme/events?projectId=widgets&type=memory.saved").await;
    let mut kinds: Vec<&str> = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["agentKind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["claude-code", "codex", "codex"]);
    // One tool recalls what another one was told, also after a restart; another company knows
    // nothing.
    let recall = json!({"query": "what did we choose over Postgres?"});
    drop(api);
    serving.stop().await.unwrap();
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    let recalled = api.post("/api/projects/widgets/memory/recall", &recall).await.fine();
    assert!(recalled["context"].as_str().unwrap().contains("SQLite over Postgres"), "{recalled}");
    let all = json!({"scope": {"companyId": "zeta"}});
    assert_eq!(api.post("/runtime/v1/companies/zeta/list", &all).await.fine()["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exchange_itself_is_kept_where_the_configuration_says_so() {
    let (_host, api, machine, _serving) = machine(json!({"writeBack": "both"})).await;
    turn(&machine, "claude", "We chose SQLite over Postgres.", "Fine.").await;
    let listed = api
        .until("/api/projects/widgets/memory?limit=100", |page| {
            page["items"].as_array().unwrap().len() >= 2
        })
        .await;
    let mut types: Vec<&str> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    types.sort_unstable();
    assert_eq!(types, ["decision", "task_context"]);
    let whole = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["type"] == "task_context")
        .unwrap();
    assert!(whole["content"].as_str().unwrap().contains("Assistant: Fine."), "{whole}");
}

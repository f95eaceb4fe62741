//! The explorer's pages of records, queries and trees: their roles, and the effects of their forms.

use memhost_tests::TestHost;
use memhost_types::BindingLimits;
use serde_json::{Value, json};

use super::support::{Answer, Api, bind, extracting};
use super::ui_pages::{Visitor, in_company, operator};

/// A host whose `acme` keeps its records with `provider`, under the key `notes`.
async fn keeping(provider: &str) -> (TestHost, Api) {
    let guests: &[&str] = if provider == "local-markdown" { &[] } else { &[provider] };
    let host = TestHost::new(guests).await.unwrap();
    host.bind_as("acme", "notes", provider, BindingLimits::default()).await.unwrap();
    let api = Api::new(&host);
    (host, api)
}

/// Writes a record with or without an agent, and answers its handle.
async fn write(api: &Api, agent: Option<&str>, record: &Value) -> String {
    let body = json!({
        "scope": {"companyId": "acme", "agentId": agent},
        "source": {
            "kind": "issue_comment", "companyId": "acme", "issueId": "PAP-7", "commentId": "c1",
        },
        "records": [record],
    });
    let answer = api.post("/runtime/v1/companies/acme/records", &body).await.fine();
    answer["records"][0]["providerRecordId"].as_str().unwrap().to_owned()
}

fn escaped(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    id.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn at(what: &str, id: &str) -> String {
    format!("/c/acme/{what}/notes/{}", escaped(id))
}

fn location(answer: &Answer) -> String {
    answer.headers["location"].to_str().unwrap().to_owned()
}

async fn stored(api: &Api) -> Vec<String> {
    let body = json!({"scope": {"companyId": "acme"}});
    let all = api.post("/runtime/v1/companies/acme/list", &body).await.fine();
    all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["text"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_listed_and_shown_in_full() {
    let (_host, api) = keeping("reference").await;
    let hostile = "<script>alert(1)</script>\n  & <img src=x onerror=alert(2)>";
    let metadata = json!({"kind": "<b>fact</b>", "tags": ["a", "b"]});
    let id = write(
        &api,
        None,
        &json!({
            "id": "team/plan 1?#%2F", "text": hostile, "summary": "<i>s</i>", "metadata": metadata,
        }),
    )
    .await;
    assert_eq!(id, "team/plan 1?#%2F", "the provider kept the name");
    write(&api, None, &json!({"text": "the gate is green"})).await;
    let admin = in_company(&api, "acme", "company_administrator").await;

    let list = admin.page("/c/acme/records").await;
    assert!(list.contains(&format!("href=\"{}\"", at("records", &id))), "{list}");
    assert!(list.contains("&lt;script&gt;alert(1)") && !list.contains("<script>alert"), "{list}");
    assert!(list.contains("Comment c1 on issue PAP-7") && list.contains("Create record"), "{list}");
    let narrowed = admin
        .page("/c/acme/records?metadataFilter=%7B%22kind%22%3A%22%3Cb%3Efact%3C%2Fb%3E%22%7D")
        .await;
    assert!(narrowed.contains("alert(1)") && !narrowed.contains("the gate is green"), "{narrowed}");
    assert_eq!(admin.get("/c/acme/records?metadataFilter=%5B1%5D").await.status, 400);
    assert_eq!(admin.get("/c/acme/records?unknown=1").await.status, 400);
    assert_eq!(admin.get("/c/acme/records?cursor=made-up").await.status, 400);

    let page = admin.page(&at("records", &id)).await;
    for shown in [
        "<p class=\"text\">&lt;script&gt;alert(1)&lt;/script&gt;\n  &amp;",
        "&lt;i&gt;s&lt;/i&gt;",
        "&lt;b&gt;fact",
        "PAP-7",
        "c1",
    ] {
        assert!(page.contains(shown), "no {shown}: {page}");
    }
    for raw in ["<script>alert", "<img", "<i>s", "<b>fact"] {
        assert!(!page.contains(raw), "{raw} is let through: {page}");
    }
    assert!(
        page.contains("record upsert") && page.contains(">Correct<") && page.contains(">Forget<"),
        "{page}"
    );
    let none = admin.get(&at("records", "nothing")).await;
    assert!(none.status == 404 && none.text.contains("has no such record"), "{}", none.text);
    assert_eq!(admin.get("/c/acme/records/nowhere/x").await.status, 404, "no such binding");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_has_pages() {
    let (_host, api) = keeping("reference").await;
    let records: Vec<Value> = (0..60).map(|n| json!({"text": format!("number <{n}>")})).collect();
    let body = json!({"scope": {"companyId": "acme"}, "records": records});
    api.post("/runtime/v1/companies/acme/records", &body).await.fine();
    let admin = in_company(&api, "acme", "company_administrator").await;
    let first = admin.page("/c/acme/records?bindingKey=notes").await;
    let next = first
        .split("data-next href=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .replace("&amp;", "&");
    assert!(next.contains("bindingKey=notes"), "{next}");
    let rest = admin.page(&next).await;
    let rows = |page: &str| page.matches("number &lt;").count();
    assert_eq!((rows(&first), rows(&rest)), (50, 10));
    assert!(rest.contains("First page") && !rest.contains("data-next"), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_is_forgotten_through_the_form_is_gone() {
    let (_host, api) = keeping("local-markdown").await;
    let id = write(&api, None, &json!({"text": "the gate code is 17"})).await;
    let (admin, auditor) = (
        in_company(&api, "acme", "company_administrator").await,
        in_company(&api, "acme", "auditor").await,
    );
    let page = auditor.page(&at("records", &id)).await;
    assert!(
        page.contains("the gate code is 17")
            && !page.contains(">Forget<")
            && !page.contains(">Correct<"),
        "{page}"
    );
    assert!(!auditor.page("/c/acme/records").await.contains("Create record"));
    for what in ["forget", "correct"] {
        assert_eq!(auditor.get(&at(what, &id)).await.status, 403, "{what}");
        assert_eq!(auditor.post(&at(what, &id), &[("text", "x")]).await.status, 403, "{what}");
    }
    assert_eq!(auditor.post("/c/acme/new-record", &[("text", "x")]).await.status, 403);
    assert_eq!(stored(&api).await, ["the gate code is 17"]);

    let asked = admin.page(&at("forget", &id)).await;
    assert!(
        asked.contains("the gate code is 17") && asked.contains("This cannot be undone"),
        "{asked}"
    );
    assert_eq!(stored(&api).await.len(), 1, "the confirmation page forgets nothing");
    let answer = admin.form(&at("forget", &id), &[]).await;
    let list = admin.page(&location(&answer)).await;
    assert!(
        list.contains("Forgotten. The record and everything derived from it are deleted."),
        "{list}"
    );
    assert!(stored(&api).await.is_empty());
    let gone = admin.get(&at("records", &id)).await;
    assert!(gone.status == 404 && gone.text.contains("forget"), "{}", gone.text);
    let again = admin.post(&at("forget", &id), &[]).await;
    assert!(admin.page(&location(&again)).await.contains("Nothing was forgotten"));
    let done = api.get("/control/v1/companies/acme/operations?kind=forget").await;
    let by = &done["items"][0]["principal"];
    assert!(by.as_str().unwrap().starts_with("company_administrator"), "{done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_written_and_corrected() {
    let (_host, api) = keeping("local-markdown").await;
    let admin = in_company(&api, "acme", "company_administrator").await;
    let wrong =
        admin.post("/c/acme/new-record", &[("text", "kept <so far>"), ("metadata", "[1]")]).await;
    assert!(wrong.status == 422 && wrong.text.contains("kept &lt;so far&gt;"), "{}", wrong.text);
    assert_eq!(admin.post("/c/acme/new-record", &[("summary", "x")]).await.status, 422, "no text");
    assert!(stored(&api).await.is_empty());
    let fields = [
        ("text", "one\r\ntwo"),
        ("agentId", "ada"),
        ("metadata", r#"{"a": 1}"#),
        ("externalRef", "a page"),
    ];
    let answer = admin.form("/c/acme/new-record", &fields).await;
    let place = location(&answer);
    assert!(place.ends_with("?agentId=ada"), "the scope goes with it: {place}");
    let page = admin.page(&place).await;
    assert!(
        page.contains("one\ntwo") && page.contains("a page") && page.contains("Record created."),
        "{page}"
    );

    let form = place.replacen("/records/", "/correct/", 1);
    let shown = admin.page(&form).await;
    assert!(shown.contains("one\ntwo</textarea>") && shown.contains("&quot;a&quot;: 1"), "{shown}");
    let wrong = admin.post(&form, &[("text", "three"), ("metadata", "{")]).await;
    assert!(wrong.status == 422 && wrong.text.contains("Nothing was changed"), "{}", wrong.text);
    let words = admin.post(&form, &[("instruction", "make it three")]).await;
    assert!(
        words.status == 422 && words.text.contains("cannot follow instructions"),
        "{}",
        words.text
    );
    let answer = admin.form(&form, &[("text", "three"), ("metadata", r#"{"a": 2}"#)]).await;
    let page = admin.page(&location(&answer)).await;
    assert!(page.contains("Corrected.") && page.contains("<p class=\"text\">three</p>"), "{page}");
    assert!(page.contains("<code>2</code>") && !page.contains("one\ntwo"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_and_explained() {
    let (_host, api) = keeping("local-markdown").await;
    let id = write(&api, None, &json!({"text": "the deploy window is <b>Friday</b> noon"})).await;
    write(&api, None, &json!({"text": "coffee is in the kitchen"})).await;
    let admin = in_company(&api, "acme", "company_administrator").await;
    assert!(admin.page("/c/acme/query").await.contains("Enter a query"));
    let page =
        admin.page("/c/acme/query?query=when+is+the+deploy+window&topK=3&intent=answer").await;
    assert!(
        page.contains("Friday")
            && !page.contains("<b>Friday")
            && page.contains(&at("records", &id)),
        "{page}"
    );
    assert!(
        page.contains("<meter") && page.contains("dl class=\"parts\"") && page.contains("words"),
        "{page}"
    );
    assert!(page.contains("Query analysis") && page.contains("&quot;deploy&quot;"), "{page}");
    let block = page
        .split("<pre id=\"context\" tabindex=\"0\">")
        .nth(1)
        .unwrap()
        .split("</pre>")
        .next()
        .unwrap();
    assert!(
        block.starts_with("## Memory\n- &quot;the deploy window is &lt;b&gt;Friday")
            && block.contains("comment c1"),
        "{block}"
    );
    let tight = admin.page("/c/acme/query?query=deploy+window&tokenBudget=3").await;
    assert!(tight.contains("No result fits the token budget."), "{tight}");
    assert!(admin.page("/c/acme/query?query=zeppelin").await.contains("No results"));
    for wrong in ["topK=0", "topK=many", "tokenBudget=0", "intent=guess", "metadataFilter=1"] {
        assert_eq!(
            admin.get(&format!("/c/acme/query?query=x&{wrong}")).await.status,
            400,
            "{wrong}"
        );
    }
    let asked = api.get("/control/v1/companies/acme/operations?kind=query").await;
    let id =
        asked["items"].as_array().unwrap().iter().find(|o| o["recordCount"] != 0).unwrap()["id"]
            .clone();
    assert!(asked.to_string().contains("company_administrator"), "{asked}");
    assert!(id.is_string());
    let explained = api.get("/control/v1/companies/acme/operations?kind=explain").await;
    assert!(!explained["items"].as_array().unwrap().is_empty());

    // A provider without `explain` is not asked, and the result is shown.
    let (_host, api) = extracting().await;
    api.capture("acme", "the deploy window is noon").await.fine();
    let admin = in_company(&api, "acme", "company_administrator").await;
    let page = admin.page("/c/acme/query?query=deploy").await;
    assert!(page.contains("Context for a run") || page.contains("No results"), "{page}");
    assert!(!page.contains("dl class=\"parts\"") && !page.contains("Query analysis"), "{page}");
    let explained = api.get("/control/v1/companies/acme/operations?kind=explain").await;
    assert!(explained["items"].as_array().unwrap().is_empty(), "{explained}");
}

fn hrefs(page: &str) -> Vec<String> {
    let rows = page.split("<a class=\"row\" href=\"").skip(1);
    rows.map(|rest| rest.split('"').next().unwrap().replace("&amp;", "&")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_leads_to_its_records() {
    let (_host, api) = keeping("local-markdown").await;
    write(&api, None, &json!({"text": "the <gate> is green"})).await;
    let admin = in_company(&api, "acme", "company_administrator").await;
    let mut path = "/c/acme/browse".to_owned();
    let mut page = admin.page(&path).await;
    for level in 0..12 {
        path = hrefs(&page)
            .first()
            .unwrap_or_else(|| panic!("level {level} has no node: {page}"))
            .clone();
        page = admin.page(&path).await;
        if path.starts_with("/c/acme/records/notes/") {
            break;
        }
        assert!(
            page.contains("aria-label=\"Breadcrumb\"") && page.contains("href=\"/c/acme/browse\""),
            "{page}"
        );
    }
    assert!(page.contains("<p class=\"text\">the &lt;gate&gt; is green</p>"), "{path}: {page}");
    assert_eq!(admin.get("/c/acme/browse?path=no%2Fsuch%2Ffolder").await.status, 404);

    let (_host, api) = extracting().await;
    let admin = in_company(&api, "acme", "company_administrator").await;
    let page = admin.page("/c/acme/browse").await;
    assert!(
        page.contains("This provider has no tree") && page.contains("<code>extracts</code>"),
        "{page}"
    );
    let browsed = api.get("/control/v1/companies/acme/operations?kind=browse").await;
    assert!(
        browsed["items"].as_array().unwrap().is_empty(),
        "the provider was not asked: {browsed}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_see_only_what_their_token_allows() {
    let (_host, api) = keeping("local-markdown").await;
    let apart = json!({"policy": {"sharing": "perAgent"}});
    api.patch("/control/v1/companies/acme/bindings/notes", &apart).await.fine();
    let own = write(&api, Some("ada"), &json!({"text": "a secret of ada"})).await;
    let other = write(&api, Some("bob"), &json!({"text": "a secret of bob"})).await;
    let agent = in_company(&api, "acme", "agent").await;
    for path in ["/c/acme/records", "/c/acme/query?query=secret", "/c/acme/browse"] {
        let page = agent.page(path).await;
        assert!(!page.contains("of bob") && !page.contains(&other), "{path}: {page}");
    }
    assert!(agent.page("/c/acme/records").await.contains("a secret of ada"));
    assert!(agent.page("/c/acme/query?query=secret").await.contains("a secret of ada"));
    assert!(agent.page(&at("records", &own)).await.contains("a secret of ada"));
    assert_eq!(agent.get(&at("records", &other)).await.status, 404);
    assert_eq!(agent.get("/c/acme/records?agentId=bob").await.status, 403);
    assert_eq!(agent.get("/c/acme/query?query=secret&agentId=bob").await.status, 403);
    assert_eq!(agent.get(&format!("{}?agentId=bob", at("records", &other))).await.status, 403);
    let tried = agent.post(&at("forget", &other), &[]).await;
    assert!(agent.page(&location(&tried)).await.contains("Nothing was forgotten"));
    assert_eq!(agent.post(&format!("{}?agentId=bob", at("forget", &other)), &[]).await.status, 403);
    assert!(
        agent
            .page(&location(&agent.form(&at("forget", &own), &[]).await))
            .await
            .contains("Forgotten.")
    );
    let of_bob = json!({"scope": {"companyId": "acme", "agentId": "bob"}});
    let left = api.post("/runtime/v1/companies/acme/list", &of_bob).await.fine();
    assert_eq!(left["items"][0]["text"], "a secret of bob");

    // The answer for another company is the same whether or not the record exists.
    let outsider = in_company(&api, "other", "company_administrator").await;
    for path in [
        "records",
        "query",
        "browse",
        "new-record",
        "records/notes/x",
        "forget/notes/x",
        "correct/notes/x",
    ] {
        let refusal = |company: &str| {
            let path = format!("/c/{company}/{path}");
            let outsider = &outsider;
            async move {
                let answer = outsider.get(&path).await;
                assert_eq!(answer.status, 403, "{path}: {}", answer.text);
                let at = answer.text.find("data-problem").unwrap();
                answer.text[at..].split("<dl").next().unwrap_or_default().to_owned()
            }
        };
        assert_eq!(refusal("acme").await, refusal("nobody").await, "{path}");
        if path.contains("get/") || path.contains("correct/") || path == "new-record" {
            assert_eq!(
                outsider.post(&format!("/c/acme/{path}"), &[("text", "x")]).await.status,
                403,
                "{path}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewing_creates_no_binding_and_shows_no_waiting_record() {
    let (_host, api) = keeping("local-markdown").await;
    let operator: Visitor = operator(&api).await;
    api.make("fresh").await;
    for path in ["records", "query?query=x", "browse"] {
        assert!(
            operator.page(&format!("/c/fresh/{path}")).await.contains("No records yet"),
            "{path}"
        );
    }
    let bindings = api.get("/control/v1/companies/fresh/bindings").await;
    assert!(bindings["items"].as_array().unwrap().is_empty(), "{bindings}");
    operator.form("/c/fresh/new-record", &[("text", "the first one")]).await;
    assert!(operator.page("/c/fresh/records").await.contains("the first one"));

    let (_host, api) = extracting().await;
    bind(&api, "acme", "careful", &json!({"review": {"all": true}})).await;
    let text = json!({"text": "waits for somebody", "kind": "fact", "confidence": 0.9}).to_string();
    api.capture("acme", &text).await.fine();
    api.until("/control/v1/companies/acme/reviews", |all| {
        !all["items"].as_array().unwrap().is_empty()
    })
    .await;
    let admin = in_company(&api, "acme", "company_administrator").await;
    for path in ["records", "query?query=waits"] {
        assert!(
            !admin.page(&format!("/c/acme/{path}")).await.contains("waits for somebody"),
            "{path}"
        );
    }
}

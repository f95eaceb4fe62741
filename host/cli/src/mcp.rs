//! `memhost mcp`: the Model Context Protocol on standard input and output, for clients that start a
//! program. Every message goes to `/mcp` of a host, so that there is one server and one set of
//! rules. While the host is away, this program says who the server is and which tools there may be,
//! because a client asks for that only when it starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::sync::{Semaphore, mpsc};

use super::args::HostArgs;
use super::connection::Connection;
use super::texts::escape;
use super::{Backend, CliError, Result};
use memhost_http::mcp::{client_label, offline};
use memhost_server::{Method, Request};
use memhost_types::repair_surrogates;

/// The longest message that the host accepts, in bytes.
const MAX_MESSAGE: usize = 8 << 20;
/// The longest line of which the id is still read, for the answer that says that it is too long.
const MAX_LINE: u64 = 64 << 20;
/// The number of messages in flight.
const AT_ONCE: usize = 32;
/// The error code of an answer that the host did not give (JSON-RPC 2.0: `-32000` to `-32099` are
/// the server's own).
const NO_ANSWER: i64 = -32000;
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
/// What tells a client to ask for the tools again.
const TOOLS_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

#[derive(Debug, Args)]
pub(super) struct McpArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Company ID; required unless the token belongs to one company.
    #[arg(long, short, env = "MEMHOST_COMPANY", value_name = "ID")]
    company: Option<String>,
    /// Agent ID that the client acts as [default: the token's agent].
    #[arg(long, env = "MEMHOST_AGENT", value_name = "ID")]
    agent: Option<String>,
    /// Project ID of the scope.
    #[arg(long, env = "MEMHOST_PROJECT", value_name = "ID")]
    project: Option<String>,
    /// Issue ID of the scope.
    #[arg(long, env = "MEMHOST_ISSUE", value_name = "ID")]
    issue: Option<String>,
    /// Run ID of the scope.
    #[arg(long, env = "MEMHOST_RUN", value_name = "ID")]
    run: Option<String>,
    /// Subject ID of the scope: an external or user identity.
    #[arg(long, env = "MEMHOST_SUBJECT", value_name = "ID")]
    subject: Option<String>,
    /// Session key of the scope.
    #[arg(long, env = "MEMHOST_SESSION", value_name = "KEY")]
    session: Option<String>,
    /// Namespace of the scope: an explicit partition.
    #[arg(long, env = "MEMHOST_NAMESPACE", value_name = "NAME")]
    namespace: Option<String>,
    /// Binding to use instead of the assigned one.
    #[arg(long, env = "MEMHOST_BINDING", value_name = "KEY")]
    binding: Option<String>,
    /// Tool names: `memory_search`, or `memory.search`, which many clients refuse.
    #[arg(
        long, env = "MEMHOST_TOOL_NAMES", value_parser = ["plain", "dotted"],
        default_value = "plain"
    )]
    tool_names: String,
}

impl McpArgs {
    /// The scope of every request.
    fn headers(&self) -> Vec<(&'static str, String)> {
        let named = [
            ("memhost-company-id", &self.company),
            ("memhost-agent-id", &self.agent),
            ("memhost-project-id", &self.project),
            ("memhost-issue-id", &self.issue),
            ("memhost-run-id", &self.run),
            ("memhost-subject-id", &self.subject),
            ("memhost-session-key", &self.session),
            ("memhost-namespace", &self.namespace),
            ("memhost-binding-key", &self.binding),
        ];
        let given =
            named.into_iter().filter_map(|(name, value)| Some((name, escape(value.as_deref()?))));
        let always = [
            ("accept", "application/json, text/event-stream"),
            ("memhost-tool-names", self.tool_names.as_str()),
        ];
        given.chain(always.map(|(name, value)| (name, value.to_owned()))).collect()
    }
}

pub(super) async fn run(mut args: McpArgs) -> Result<()> {
    let connection = Connection::of(&args.host)?;
    let backend = Backend::open(&args.host, &connection).await?;
    args.company = args.company.or(connection.company);
    args.agent = args.agent.or(connection.agent);
    let bridge = Bridge {
        backend,
        headers: args.headers(),
        is_dotted: args.tool_names == "dotted",
        client: Mutex::new(Client::default()),
        guessed_tools: AtomicBool::new(false),
    };
    relay(Arc::new(bridge), BufReader::new(tokio::io::stdin()), tokio::io::stdout()).await
}

/// The client's name and the protocol version, from `initialize`.
#[derive(Default, Clone)]
struct Client {
    name: Option<String>,
    version: Option<String>,
}

struct Bridge {
    backend: Backend,
    headers: Vec<(&'static str, String)>,
    is_dotted: bool,
    client: Mutex<Client>,
    /// Whether the client was told of tools while the host was away.
    guessed_tools: AtomicBool,
}

/// Forwards messages until the input ends and every message is answered.
async fn relay(
    bridge: Arc<Bridge>,
    mut input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<()> {
    let (answers, mut to_write) = mpsc::channel::<Vec<u8>>(AT_ONCE);
    let writing = tokio::spawn(async move {
        while let Some(mut line) = to_write.recv().await {
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await?;
        }
        Ok::<_, std::io::Error>(())
    });
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(line) = next_line(&mut input).await? {
        let message = read(line);
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
        let (bridge, answers) = (Arc::clone(&bridge), answers.clone());
        // Later messages depend on `initialize`, so it is answered first.
        let is_first =
            message.as_ref().is_ok_and(|message: &Value| message["method"] == "initialize");
        let answering = async move {
            for line in bridge.answer(message).await {
                // If the client stopped reading, the writer below returns the error.
                let _ = answers.send(line).await;
            }
            drop(permit);
        };
        match is_first {
            true => answering.await,
            false => drop(tokio::spawn(answering)),
        }
    }
    drop(answers);
    writing.await.map_err(CliError::runtime)?.map_err(CliError::from)
}

/// A message, or the answer to what is none.
fn read(line: Option<Vec<u8>>) -> Result<Value, Vec<u8>> {
    let too_long = |id: &Value| {
        refusal(id, INVALID_REQUEST, "the message is longer than 8 MiB; send less at once")
    };
    let line = line.ok_or_else(|| too_long(&Value::Null))?;
    let message: Value = serde_json::from_slice(&repair_surrogates(&line)).map_err(|error| {
        refusal(&Value::Null, PARSE_ERROR, &format!("the message is not JSON: {error}"))
    })?;
    if line.len() > MAX_MESSAGE {
        return Err(too_long(&message["id"]));
    }
    Ok(message)
}

/// The next line that is not empty, and `None` within for one that is too long to be kept; none at
/// the end.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Option<Vec<u8>>>> {
    loop {
        let mut line = Vec::new();
        let read = (&mut *input).take(MAX_LINE + 1).read_until(b'\n', &mut line).await?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') && line.len() as u64 > MAX_LINE {
            // The rest of the line is skipped.
            while line.last() != Some(&b'\n') {
                line.clear();
                if (&mut *input).take(MAX_LINE).read_until(b'\n', &mut line).await? == 0 {
                    break;
                }
            }
            return Ok(Some(None));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(Some(line)));
        }
    }
}

impl Bridge {
    /// The lines that answer a message; none to notifications.
    async fn answer(&self, message: Result<Value, Vec<u8>>) -> Vec<Vec<u8>> {
        let message = match message {
            Ok(message) => message,
            Err(refused) => return vec![refused],
        };
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        // The host keeps no session, so a notification has no effect.
        if message.is_object() && message.get("id").is_none() {
            return Vec::new();
        }
        let headers = self.headers_for(&method, &message);
        let sent = self.backend.exchange(Request {
            method: Method::Post,
            path: "/mcp".to_owned(),
            body: Some(message.to_string()),
            headers,
        });
        let (status, error) = match sent.await {
            Ok((202, _)) => return Vec::new(),
            Ok((_, body)) if is_message(&body) => {
                if method == "initialize" {
                    self.note_version(&body);
                }
                // After the answer, so that nothing comes before that of `initialize`.
                let news = self.guessed_tools.swap(false, Ordering::Relaxed);
                return [Some(body), news.then(|| TOOLS_CHANGED.into())]
                    .into_iter()
                    .flatten()
                    .collect();
            }
            Ok((status, body)) => (Some(status), CliError::problem(status, &body)),
            Err(error) => (None, error),
        };
        // A proxy answers with these when the host is away, and the host when it is too busy.
        let is_away = matches!(status, None | Some(502..=504));
        if let Some(result) = is_away.then(|| offline(&message, self.is_dotted)).flatten() {
            tracing::warn!(%error, method, "the host did not answer this; this program does");
            if method == "tools/list" {
                self.guessed_tools.store(true, Ordering::Relaxed);
            }
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            let answer = answer.to_string().into_bytes();
            if method == "initialize" {
                self.note_version(&answer);
            }
            return vec![answer];
        }
        tracing::error!(%error, method, "the host did not answer");
        let code = if status == Some(400) { INVALID_REQUEST } else { NO_ANSWER };
        match &message {
            // One line for all of them, as the client sent them.
            Value::Array(messages) => {
                let asked = messages.iter().filter(|message| message.get("id").is_some());
                let answers: Vec<Value> =
                    asked.map(|message| unanswered(message, code, &error)).collect();
                match answers.is_empty() {
                    true => Vec::new(),
                    false => vec![Value::Array(answers).to_string().into_bytes()],
                }
            }
            message => vec![unanswered(message, code, &error).to_string().into_bytes()],
        }
    }

    /// The headers of a message: the scope, and the values that the protocol repeats outside of the
    /// body.
    fn headers_for(&self, method: &str, message: &Value) -> Vec<(&'static str, String)> {
        let mut headers = self.headers.clone();
        let params = &message["params"];
        let client = {
            let mut client = self.client.lock();
            if method == "initialize" {
                let told = |name: &str| params["clientInfo"][name].as_str();
                let (name, version) = (told("name").unwrap_or_default(), told("version"));
                client.name = client_label(name, told("title"), version.unwrap_or_default());
                client.version = None;
            }
            client.clone()
        };
        let printable = |text: &str| {
            text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(120).collect()
        };
        if let Some(name) = client.name {
            headers.push(("user-agent", printable(&name)));
        }
        let told =
            params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str().map(str::to_owned);
        if let Some(version) = told.clone().or(client.version) {
            headers.push(("mcp-protocol-version", printable(&version)));
        }
        if told.is_some() {
            headers.push(("mcp-method", printable(method)));
            let name = match method {
                "tools/call" | "prompts/get" => params["name"].as_str(),
                "resources/read" => params["uri"].as_str(),
                _ => None,
            };
            headers.extend(name.map(|name| ("mcp-name", wrapped(name))));
        }
        headers
    }

    fn note_version(&self, body: &[u8]) {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        self.client.lock().version =
            answer["result"]["protocolVersion"].as_str().map(str::to_owned);
    }
}

/// A header's value for any text, as revision 2026-07-28 has it.
fn wrapped(text: &str) -> String {
    use base64::Engine as _;
    let stands = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim() == text
        && !text.starts_with("=?");
    if stands {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
}

fn is_message(body: &[u8]) -> bool {
    !body.contains(&b'\n')
        && serde_json::from_slice::<Value>(body)
            .is_ok_and(|body| body.get("jsonrpc").is_some() || body.is_array())
}

/// The answer if the host gave none. For a tool call it is a tool result, because a model reads
/// nothing else.
fn unanswered(message: &Value, code: i64, error: &CliError) -> Value {
    let (id, error) = (&message["id"], error.to_string());
    if message["method"] != "tools/call" {
        return json!({
            "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": error },
        });
    }
    let text = format!(
        "unavailable: {error}. Memory is not available now. Continue the task without it, and tell \
         the user."
    );
    let result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn refusal(id: &Value, code: i64, message: &str) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        .to_string()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_fits_into_a_header() {
        assert_eq!(wrapped("memory.search"), "memory.search");
        assert_eq!(wrapped("ü"), "=?base64?w7w=?=");
        for text in [" a", "a\n", "=?base64?w7w=?="] {
            assert!(wrapped(text).starts_with("=?base64?") && wrapped(text) != text, "{text}");
        }
    }

    #[tokio::test]
    async fn lines_are_taken_up_to_their_limit() {
        let long = "x".repeat(65 << 20);
        let text = format!("one\n\n  \n{long}\ntwo");
        let mut input = BufReader::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(line) = next_line(&mut input).await.unwrap() {
            found.push(line.map(|line| String::from_utf8(line).unwrap().trim().to_owned()));
        }
        assert_eq!(found, [Some("one".to_owned()), None, Some("two".to_owned())]);
    }

    #[test]
    fn what_is_no_message_is_answered_with_its_id() {
        let refused = |line: Option<String>| -> Value {
            let refused = read(line.map(String::into_bytes)).unwrap_err();
            serde_json::from_slice(&refused).unwrap()
        };
        let long = "x".repeat(MAX_MESSAGE);
        let answer = refused(Some(format!(r#"{{"params":{{"id":1,"a":"{long}"}},"id":"q 7"}}"#)));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("q 7"), &json!(-32600)));
        assert_eq!(refused(None)["error"]["code"], -32600);
        assert_eq!(refused(Some("{".to_owned()))["error"]["code"], -32700);
    }
}

//! What the program `memhost mcp` answers while its host is away: who the server is and which tools
//! there may be. A client that is told nothing at its start does without memory for the whole
//! session.

use rmcp::ServerHandler;
use rmcp::model::{
    DiscoverResult, InitializeRequestParams, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, ProtocolVersion, ServerConfig, ServerResult,
};
use serde_json::Value;

use super::request_scope::ToolNames;
use super::rules;
use super::server::info;
use super::tools::Tool;

/// The result of a request that needs no host. `None`: it needs one, or its params do not fit.
/// `is_dotted` says how the tools are called.
pub fn offline(message: &Value, is_dotted: bool) -> Option<Value> {
    let names = if is_dotted { ToolNames::Dotted } else { ToolNames::Plain };
    let mut result = match message["method"].as_str()? {
        "initialize" => {
            let asked: InitializeRequestParams =
                serde_json::from_value(message["params"].clone()).ok()?;
            let mut result = Unreached(names).negotiate_initialize(&asked).ok()?;
            // The host may have other tools for this token. The client is told when it is there.
            result.capabilities.tools.get_or_insert_default().list_changed = Some(true);
            ServerResult::InitializeResult(result)
        }
        "server/discover" => {
            let versions = ProtocolVersion::KNOWN_VERSIONS.to_vec();
            let server = info(Tool::OWN, names);
            ServerResult::DiscoverResult(DiscoverResult::from_server_info(versions, server))
        }
        "ping" => ServerResult::empty(()),
        "tools/list" => {
            let tools = Tool::OWN.iter().map(|tool| tool.describe(names)).collect();
            ServerResult::ListToolsResult(ListToolsResult::with_all_items(tools))
        }
        "prompts/list" => {
            let prompts = vec![rules::prompt()];
            ServerResult::ListPromptsResult(ListPromptsResult::with_all_items(prompts))
        }
        "resources/list" => {
            ServerResult::ListResourcesResult(ListResourcesResult::with_all_items(Vec::new()))
        }
        "resources/templates/list" => {
            let none = ListResourceTemplatesResult::with_all_items(Vec::new());
            ServerResult::ListResourceTemplatesResult(none)
        }
        _ => return None,
    };
    // As the library does it for the host.
    let revision = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    match revision.as_str() >= Some(ProtocolVersion::V_2026_07_28.as_str()) {
        true => result.fill_missing_cache_hints(),
        false => result.strip_result_type_for_legacy_peer(),
    }
    serde_json::to_value(&result).ok()
}

/// A server without a host, which only says who it is.
struct Unreached(ToolNames);

impl ServerHandler for Unreached {
    fn get_info(&self) -> ServerConfig {
        info(Tool::OWN, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_client_learns_who_is_there_before_the_host_is() {
        let ask = |method: &str, params: Value| {
            offline(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), false)
        };
        for (asked, answered) in [
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2999-01-01", "2025-11-25"),
        ] {
            let hello = json!({"protocolVersion": asked, "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"}});
            let result = ask("initialize", hello).unwrap();
            assert_eq!(result["protocolVersion"], answered);
            assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
            assert!(result["instructions"].as_str().unwrap().contains("`memory_search`"));
        }
        let tools = ask("tools/list", json!({})).unwrap();
        assert_eq!(tools["tools"][0]["name"], "memory_search");
        assert!(tools.get("resultType").is_none() && tools.get("ttlMs").is_none(), "{tools}");
        let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
        let tools = ask("tools/list", meta).unwrap();
        assert_eq!((&tools["ttlMs"], &tools["cacheScope"]), (&json!(0), &json!("private")));
        for needs_it in ["tools/call", "resources/read", "nosuch", "initialize"] {
            assert_eq!(ask(needs_it, json!({})), None, "{needs_it}");
        }
    }
}

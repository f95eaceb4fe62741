//! The protocol's requests, each answered on its own.

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, DiscoverResult,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::call::Call;
use super::error::McpError;
use super::guard::Message;
use super::request_scope::{RequestScope, ToolNames};
use super::tools::Tool;
use super::{McpTools, dispatch, params, resources, rules};
use memhost_core::{Abilities, Service};
use memhost_executor::in_turn;
use memhost_types::OperationKind;

type Context = RequestContext<RoleServer>;

/// The tools that crates above add.
fn added(context: &Context) -> McpTools {
    let parts = context.extensions.get::<Parts>();
    parts.map(|parts| McpTools::of(&parts.extensions)).unwrap_or_default()
}

/// Answers requests of the protocol.
#[derive(Clone)]
pub(super) struct MemoryServer {
    service: Arc<Service>,
}

impl MemoryServer {
    /// In front of an open host.
    pub(super) fn new(service: Arc<Service>) -> Self {
        Self { service }
    }

    /// The caller with the scope filled in, and what the binding of that scope can do.
    async fn resolve(
        &self,
        context: &Context,
        kind: OperationKind,
    ) -> Result<(RequestScope, Abilities), McpError> {
        let mut from = RequestScope::of(context)?;
        let RequestScope { caller, scope, binding, .. } = &mut from;
        let abilities =
            self.service.control().abilities(caller, kind, scope, binding.as_ref()).await?;
        Ok((from, abilities))
    }

    async fn tools(&self, context: &Context) -> Result<(Vec<Tool>, ToolNames), McpError> {
        let (from, abilities) = self.resolve(context, OperationKind::Control).await?;
        let (company, added) = (&from.scope.company_id, added(context));
        let tools = Tool::all_for(&self.service, &from.caller, company, &abilities, added);
        Ok((tools, from.names))
    }
}

/// Who the server is, and how a client uses these tools.
pub(super) fn info(tools: &[Tool], names: ToolNames) -> ServerConfig {
    let capabilities =
        ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
    let server = Implementation::new("memhost", env!("CARGO_PKG_VERSION"))
        .with_title("Company memory")
        .with_description("The memory of a company of agents, whichever provider keeps it.");
    ServerConfig::new(capabilities)
        .with_server_info(server)
        .with_instructions(rules::rules(tools, names))
}

impl ServerHandler for MemoryServer {
    fn get_info(&self) -> ServerConfig {
        info(Tool::OWN, ToolNames::default())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        let (tools, names) = self.tools(&context).await?;
        let mut result = self.negotiate_initialize(&request)?;
        context.peer.set_peer_info(request);
        result.instructions = Some(rules::rules(&tools, names));
        Ok(result)
    }

    async fn discover(&self, context: Context) -> Result<DiscoverResult, ErrorData> {
        let (tools, names) = self.tools(&context).await?;
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, info(&tools, names)))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let (tools, names) = self.tools(&context).await?;
        let tools = tools.into_iter().map(|tool| tool.describe(names));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let none = || McpError::NoTool(request.name.to_string());
        let tool = Tool::named(&request.name, added(&context)).ok_or_else(none)?;
        let (from, abilities) = match self.resolve(&context, tool.kind()).await {
            Ok(known) => known,
            Err(error) => return Ok(error.into_result().into()),
        };
        if !tool.exists(&abilities) {
            return Err(none().into());
        }
        // The library answers each message in a task of its own, which has no turn of the request.
        let parts = context.extensions.get::<Parts>();
        let message = parts.and_then(|parts| parts.extensions.get::<Message>());
        let bytes = message.map_or(0, Message::bytes);
        let company = from.scope.company_id.clone();
        let call = Call { service: &self.service, request: from, abilities };
        let work = in_turn(company.as_str(), bytes, dispatch::run(call, tool, request.arguments));
        let result = work.await.unwrap_or_else(McpError::into_result);
        if let Some(message) = message {
            let texts = result.content.iter().filter_map(|block| block.as_text());
            message.set_answer_bytes(texts.map(|content| content.text.len()).sum());
        }
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let from = RequestScope::of(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        Ok(resources::list(&self.service, from, cursor).await?)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let from = RequestScope::of(&context)?;
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates(&self.service, &from)))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let from = RequestScope::of(&context)?;
        Ok(resources::read(&self.service, from, &request.uri).await?.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![rules::prompt()]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (tools, names) = self.tools(&context).await?;
        Ok(rules::get(&request.name, &tools, names)?.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: Context,
    ) -> Result<CustomResult, ErrorData> {
        Err(params::refused(&request.method, request.params))
    }
}

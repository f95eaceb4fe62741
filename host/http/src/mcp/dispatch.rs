//! From a tool's name to its work.

use rmcp::model::CallToolResult;

use super::call::Call;
use super::error::McpError;
use super::schema::read;
use super::tools::Tool;
use memhost_types::JsonObject;

/// Runs a tool.
///
/// # Errors
/// Where an argument is not accepted, and where `core` refuses or fails.
pub(super) async fn run(
    call: Call<'_>,
    tool: Tool,
    arguments: Option<JsonObject>,
) -> Result<CallToolResult, McpError> {
    match tool {
        Tool::Search => call.search(read(arguments)?).await,
        Tool::Note => call.note(read(arguments)?).await,
        Tool::Correct => call.correct(read(arguments)?).await,
        Tool::Forget => call.forget(read(arguments)?).await,
        Tool::Browse => call.browse(read(arguments)?).await,
        Tool::Jobs => call.jobs(read(arguments)?).await,
        Tool::Added(tool) => Ok((tool.run)(call, arguments).await?.0),
    }
}

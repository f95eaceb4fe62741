//! The HTTP surfaces of a host: the two planes, MCP, and what every surface shares.

pub mod api;
pub mod edge;
pub mod mcp;

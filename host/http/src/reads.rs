//! Which requests only read. What they answer can be refused or made again: nothing was done.

use axum::http::Method;

use memhost_types::OperationKind;

/// An extension of the answer to a request that only read, or that does nothing new when it is sent
/// again, where its address does not say so.
#[derive(Debug, Clone, Copy)]
pub struct OnlyRead;

/// Whether a request of a method to an address only reads. At `/mcp` the message says it; its
/// answer has [`OnlyRead`].
pub fn only_reads(method: &Method, path: &str) -> bool {
    method.is_safe() || is_read_with_a_body(path)
}

/// Whether an address is asked with `POST` and only reads.
pub(crate) fn is_read_with_a_body(path: &str) -> bool {
    let path: Vec<&str> = path.split('/').skip(1).collect();
    match path.as_slice() {
        ["runtime", "v1", "companies", _, route] => {
            OperationKind::ALL.iter().any(|kind| kind.is_read() && kind.route() == Some(*route))
        }
        ["runtime", "v1", "companies", _, "sources", "list"] => true,
        // Apropos' routes.
        [.., "memory", "search" | "recall" | "export"] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_told_from_writes() {
        for (method, path) in [
            (Method::GET, "/control/v1/companies/acme/records"),
            (Method::POST, "/runtime/v1/companies/acme/query"),
            (Method::POST, "/runtime/v1/companies/acme/list"),
            (Method::POST, "/runtime/v1/companies/acme/sources/list"),
            (Method::POST, "/api/apropos/memory/search"),
        ] {
            assert!(only_reads(&method, path), "{method} {path}");
        }
        for (method, path) in [
            (Method::POST, "/runtime/v1/companies/acme/records"),
            (Method::POST, "/runtime/v1/companies/acme/forget"),
            (Method::POST, "/runtime/v1/companies/acme/hooks"),
            (Method::DELETE, "/control/v1/companies/acme/tokens/1"),
            (Method::POST, "/mcp"),
        ] {
            assert!(!only_reads(&method, path), "{method} {path}");
        }
    }
}

//! Which requests only read. What they answer can be refused or made again: nothing was done.

use axum::extract::Request;
use axum::http::Extensions;

use memhost_types::OperationKind;

/// An extension of the answer to a request that only read, or that does nothing new when it is sent
/// again, where its address does not say so.
#[derive(Debug, Clone, Copy)]
pub struct OnlyRead;

/// The routes of crates above that are asked with `POST` and only read, each as it was registered.
/// An extension of every request.
#[derive(Debug, Clone, Copy)]
pub struct ReadRoutes(pub &'static [&'static str]);

/// Whether a request only reads. At `/mcp` the message says it; its answer has [`OnlyRead`].
pub fn only_reads(request: &Request) -> bool {
    request.method().is_safe() || is_read_with_a_body(request.uri().path(), request.extensions())
}

/// Whether a request to an address is sent with `POST` and only reads.
pub(crate) fn is_read_with_a_body(path: &str, extensions: &Extensions) -> bool {
    let path: Vec<&str> = path.split('/').skip(1).collect();
    match path.as_slice() {
        ["runtime", "v1", "companies", _, route] => {
            OperationKind::ALL.iter().any(|kind| kind.is_read() && kind.route() == Some(*route))
        }
        ["runtime", "v1", "companies", _, "sources", "list"] => true,
        _ => extensions
            .get::<ReadRoutes>()
            .is_some_and(|ReadRoutes(routes)| routes.iter().any(|route| is_at(route, &path))),
    }
}

/// Whether a path is that of a route, such as `/api/{project}/find`.
fn is_at(route: &str, path: &[&str]) -> bool {
    let mut parts = route.split('/').skip(1);
    let is_equal =
        |found: &&str| parts.next().is_some_and(|part| part == *found || part.starts_with('{'));
    path.iter().all(is_equal) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Method;

    fn request(method: Method, path: &str) -> Request {
        Request::builder().method(method).uri(path).body(Body::empty()).unwrap()
    }

    #[test]
    fn reads_are_told_from_writes() {
        for (method, path) in [
            (Method::GET, "/control/v1/companies/acme/records"),
            (Method::POST, "/runtime/v1/companies/acme/query"),
            (Method::POST, "/runtime/v1/companies/acme/list"),
            (Method::POST, "/runtime/v1/companies/acme/sources/list"),
        ] {
            assert!(only_reads(&request(method, path)), "{path}");
        }
        for (method, path) in [
            (Method::POST, "/runtime/v1/companies/acme/records"),
            (Method::POST, "/runtime/v1/companies/acme/forget"),
            (Method::POST, "/runtime/v1/companies/acme/hooks"),
            (Method::DELETE, "/control/v1/companies/acme/tokens/1"),
            (Method::POST, "/mcp"),
        ] {
            assert!(!only_reads(&request(method, path)), "{path}");
        }
    }

    #[test]
    fn a_crate_above_says_which_of_its_routes_only_read() {
        for (path, is_read) in [
            ("/api/find/find", true),
            ("/api/p/add", false),
            ("/api/p/find/more", false),
            ("/api/find", false),
            ("/other/p/find", false),
        ] {
            let mut request = request(Method::POST, path);
            assert!(!only_reads(&request), "{path}");
            request.extensions_mut().insert(ReadRoutes(&["/api/{project}/find"]));
            assert_eq!(only_reads(&request), is_read, "{path}");
        }
    }
}

//! Which requests only read. What they answer can be refused or made again: nothing was done.

use axum::extract::{MatchedPath, Request};
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
        _ => {
            let route = extensions.get::<MatchedPath>().map(MatchedPath::as_str);
            let reads = extensions.get::<ReadRoutes>();
            route.zip(reads).is_some_and(|(route, ReadRoutes(reads))| reads.contains(&route))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Method;
    use axum::middleware::{Next, from_fn};
    use axum::routing::post;
    use axum::{Extension, Router};
    use tower::ServiceExt;

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

    #[tokio::test]
    async fn a_crate_above_says_which_of_its_routes_only_read() {
        let told = async |request: Request, _: Next| only_reads(&request).to_string();
        let routes = Router::new().route("/find", post("")).route("/add", post(""));
        let routes = Router::new()
            .nest("/api/{project}", routes)
            .layer(from_fn(told))
            .layer(Extension(ReadRoutes(&["/api/{project}/find"])));
        for (path, is_read) in [("/api/find/find", "true"), ("/api/find/add", "false")] {
            let answer = routes.clone().oneshot(request(Method::POST, path)).await.unwrap();
            let body = axum::body::to_bytes(answer.into_body(), 9).await.unwrap();
            assert_eq!(body, is_read, "{path}");
        }
    }
}

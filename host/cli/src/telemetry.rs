//! The log on standard error, and the export of traces to a collector (OTLP over HTTP).

use std::io::Write;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use super::argument::did_you_mean;
use super::{CliError, Result};
use memhost_types::foreign::visible;

/// The targets that are exported: requests, operations and providers' logs.
const TRACED: &str = "memhost=debug";
/// The timeout of a request to the collector.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer of a collector, in bytes.
const MAX_ANSWER: u64 = 4 << 20;

/// Flushes the export when it is dropped.
#[derive(Debug, Default)]
#[must_use = "dropping it ends the export"]
pub struct Telemetry(Option<SdkTracerProvider>);

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(|provider| provider.shutdown()) {
            eprintln!("the last traces could not be sent: {error}");
        }
    }
}

/// A filter of the log. The library takes any word for the name of a target, of which nothing is
/// logged then.
pub(super) fn filter(text: &str) -> Result<EnvFilter> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let wrong = |message: String| CliError::input("--log", message);
    for directive in
        text.split(',').map(str::trim).filter(|directive| !directive.contains(['=', '[', ':']))
    {
        if !LEVELS.contains(&directive.to_lowercase().as_str()) && !directive.starts_with("memhost")
        {
            let near = did_you_mean(directive, LEVELS);
            let levels = LEVELS.join(", ");
            return Err(wrong(format!("`{directive}` is no level, which are {levels}{near}")));
        }
    }
    EnvFilter::try_new(text).map_err(|_| {
        wrong(format!("`{text}` is no filter; write a level such as info, or memhost=debug"))
    })
}

/// Sets up the log with `filter`, and the export where there is a collector at `endpoint`.
pub(super) fn init(filter: EnvFilter, endpoint: Option<&str>) -> Result<Telemetry> {
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(is_terminal)
        .with_writer(|| Lines(std::io::stderr()))
        .with_filter(filter);
    let provider = endpoint.map(provider).transpose()?;
    let traces = provider.as_ref().map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("memhost"))
            .with_filter(EnvFilter::new(TRACED))
    });
    tracing_subscriber::registry().with(log).with(traces).init();
    Ok(Telemetry(provider))
}

/// What the library styles an event with on a terminal.
const STYLES: [&str; 10] = [
    "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[3m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m",
    "\x1b[35m", "\x1b[36m",
];

/// Writes each event as one line. What others chose is in it, such as the name of a file: it must
/// not look like another event, and a terminal must not execute it.
struct Lines<W>(W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let (text, end) = text.strip_suffix('\n').map_or((&*text, ""), |text| (text, "\n"));
        let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find('\x1b') {
            shown.push_str(&visible(&rest[..at]));
            let style = STYLES.into_iter().find(|style| rest[at..].starts_with(style));
            shown.push_str(style.unwrap_or("\\u{1b}"));
            rest = &rest[at + style.map_or(1, str::len)..];
        }
        shown.push_str(&visible(rest));
        shown.push_str(end);
        self.0.write_all(shown.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn provider(endpoint: &str) -> Result<SdkTracerProvider> {
    if !["http://", "https://"].iter().any(|scheme| endpoint.starts_with(scheme)) {
        let message = format!("`{endpoint}` has no scheme; write http://{endpoint}");
        return Err(CliError::input("otlp_endpoint", message));
    }
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Blocking::new())
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .with_timeout(TIMEOUT)
        .build()
        .map_err(|error| CliError::input("otlp_endpoint", error))?;
    let resource = Resource::builder().with_service_name("memhost").build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Sends exported spans. The exporter has its own thread, which may block.
#[derive(Debug)]
struct Blocking(ureq::Agent);

impl Blocking {
    fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .build();
        Self(config.into())
    }
}

#[async_trait::async_trait]
impl HttpClient for Blocking {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let mut answer = self.0.run(Request::from_parts(parts, body.as_ref()))?;
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec()?;
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = answer.status();
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;
    use tracing_subscriber::fmt::MakeWriter;

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(std::sync::Arc<parking_lot::Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Kept {
        type Writer = Lines<Self>;

        fn make_writer(&'a self) -> Lines<Self> {
            Lines(self.clone())
        }
    }

    #[test]
    fn a_name_in_an_event_makes_no_other_event() {
        for is_terminal in [false, true] {
            let kept = Kept::default();
            let log =
                tracing_subscriber::fmt::layer().with_ansi(is_terminal).with_writer(kept.clone());
            tracing::subscriber::with_default(tracing_subscriber::registry().with(log), || {
                let file = "a.wasm\n2026-11-20T10:00:00Z ERROR memhost: \u{1b}[2Jforged\u{202e}";
                tracing::warn!(%file, "left out: {file}");
                tracing::info!("next");
            });
            let text = String::from_utf8(kept.0.lock().clone()).unwrap();
            assert_eq!(text.lines().count(), 2, "{text}");
            assert!(!text.contains("\u{1b}[2J") && !text.contains('\u{202e}'), "{text}");
            assert_eq!(text.contains("\u{1b}[0m"), is_terminal, "{text}");
        }
    }

    #[test]
    fn a_request_and_what_happened_in_it_reach_the_collector() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/", listener.local_addr().unwrap());
        let collector = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut got = Vec::new();
            let mut part = [0; 4_096];
            while !got.windows(17).any(|window| window == b"an operation ends") {
                let count = stream.read(&mut part).unwrap();
                assert!(count > 0, "the export ended: {}", String::from_utf8_lossy(&got));
                got.extend_from_slice(&part[..count]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            String::from_utf8_lossy(&got).into_owned()
        });
        let provider = provider(&endpoint).unwrap();
        let traces = tracing_opentelemetry::layer().with_tracer(provider.tracer("memhost"));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(traces), || {
            let _request = tracing::info_span!("request", path = "/runtime/v1").entered();
            tracing::debug!("an operation ends");
        });
        drop(Telemetry(Some(provider)));
        let got = collector.join().unwrap();
        assert!(got.starts_with("POST /v1/traces HTTP/1.1"), "{got}");
        assert!(got.contains("/runtime/v1") && got.contains("memhost"), "{got}");
    }
}

//! A request into a guest and its answer back: what went in comes out, or the request is refused.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use memhost_core::Audit;
use memhost_tests::{TestHost, caller, query};
use memhost_types::BindingLimits;
use tokio::runtime::Runtime;

fn host() -> &'static (Runtime, TestHost) {
    static HOST: OnceLock<(Runtime, TestHost)> = OnceLock::new();
    HOST.get_or_init(|| {
        let runtime = Runtime::new().unwrap();
        let host = runtime.block_on(async {
            let host =
                TestHost::with(&["echo"], |options| options.audit = Audit::Relaxed).await.unwrap();
            host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
            host
        });
        (runtime, host)
    })
}

fuzz_target!(|input: (String, u32, Option<String>)| {
    let (text, top_k, filter) = input;
    let (runtime, host) = host();
    let mut request = query("acme", &text);
    request.top_k = Some(top_k);
    request.metadata_filter =
        filter.map(|key| serde_json::Map::from_iter([(key.clone(), key.into())]));
    if let Ok(found) = runtime.block_on(host.service().operations().query(&caller(), request)) {
        assert!(found.snippets.len() <= top_k as usize);
        assert!(found.snippets.iter().all(|snippet| snippet.text.contains(&text)), "{text:?}");
    }
});

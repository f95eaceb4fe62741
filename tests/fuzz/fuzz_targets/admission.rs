//! A sound component with bytes written over it: admitted or refused, never worse. The input is a
//! list of places and what is written there.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use memhost_sandbox::{Component, Sandbox, SandboxOptions};
use tokio::runtime::Runtime;

struct Host {
    runtime: Runtime,
    sandbox: Sandbox,
    component: Vec<u8>,
}

fn host() -> &'static Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| Host {
        runtime: Runtime::new().unwrap(),
        sandbox: Sandbox::new(SandboxOptions { instances: 8, ..SandboxOptions::default() })
            .unwrap(),
        component: std::fs::read(memhost_tests::guest_file("exports-nothing")).unwrap(),
    })
}

fuzz_target!(|patches: Vec<(u32, u8)>| {
    let host = host();
    let mut bytes = host.component.clone();
    for (place, byte) in patches.into_iter().take(64) {
        let place = place as usize % bytes.len();
        bytes[place] = byte;
    }
    if let Err(error) = host.runtime.block_on(Component::admit(&host.sandbox, bytes, None)) {
        assert!(!error.to_string().is_empty());
    }
});

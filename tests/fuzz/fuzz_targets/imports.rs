//! A company's export with bytes written over it and lines put in between: imported or refused.
//! What is refused leaves nothing.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use memhost_core::ImportOptions;
use memhost_tests::{TestHost, caller, parse};
use memhost_types::BindingLimits;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

struct Fuzzed {
    runtime: Runtime,
    host: TestHost,
    export: Vec<String>,
}

async fn new_host() -> TestHost {
    TestHost::new(&["extracts"]).await.unwrap()
}

impl Fuzzed {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let (host, export) = runtime.block_on(async {
            let host = new_host().await;
            host.bind("acme", "extracts", BindingLimits::default()).await.unwrap();
            host.write("acme", "a fact").await.unwrap();
            host.query("acme", "fact").await.unwrap();
            let (mut lines, mut export) =
                (host.service().transfer().export(&parse("acme")), Vec::new());
            while let Some(line) = lines.recv().await {
                export.push(line.unwrap());
            }
            (new_host().await, export)
        });
        Self { runtime, host, export }
    }
}

thread_local! {
    static FUZZED: RefCell<Fuzzed> = RefCell::new(Fuzzed::new());
}

fuzz_target!(|input: (Vec<(u8, u16, u8)>, Vec<(u8, String)>)| {
    let (patches, more) = input;
    FUZZED.with_borrow_mut(|fuzzed| {
        let mut lines: Vec<Vec<u8>> =
            fuzzed.export.iter().map(|line| line.trim_end().as_bytes().to_vec()).collect();
        for (line, place, byte) in patches {
            let line = usize::from(line) % lines.len();
            let place = usize::from(place) % lines[line].len();
            lines[line][place] = byte;
        }
        for (at, line) in more {
            lines.insert(usize::from(at) % lines.len(), line.into_bytes());
        }
        let service = fuzzed.host.service();
        let imported = fuzzed.runtime.block_on(async {
            let (sender, receiver) = mpsc::channel(16);
            let sending = async move {
                for line in lines {
                    if sender.send(Ok(String::from_utf8_lossy(&line).into_owned())).await.is_err() {
                        break;
                    }
                }
            };
            let options = ImportOptions { accepts_grants: true, accepts_unscoped: true };
            let (operator, company) = (caller(), parse("acme"));
            let (imported, ()) = tokio::join!(
                service.transfer().import(&operator, &company, options, receiver),
                sending
            );
            imported
        });
        match imported {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                let left = fuzzed.runtime.block_on(fuzzed.host.operations("acme")).unwrap();
                assert!(left.is_empty(), "{left:?}");
                let bindings = fuzzed.runtime.block_on(service.control().bindings(&parse("acme")));
                assert!(bindings.is_ok_and(|bindings| bindings.is_empty()));
            }
            // The company is there now: the next input needs another host.
            Ok(_) => fuzzed.host = fuzzed.runtime.block_on(new_host()),
        }
    });
});

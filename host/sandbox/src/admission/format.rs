//! Checks of a component that do not run it: its format, its contract version, its needs.

use crate::component::MAX_COMPONENT_BYTES;
use crate::contract::PACKAGE;
use crate::engine::Sandbox;
use crate::error::AdmissionError;

/// The contract versions that this host serves. Within a minor version there are only additions.
const KNOWN_VERSIONS: &str = "0.1.x";

/// Tells what a file is by its first bytes, before anything parses it.
pub(super) fn check_format(bytes: &[u8]) -> Result<(), AdmissionError> {
    const CORE: &[u8] = b"\0asm\x01\0\0\0";
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    if bytes.len() as u64 > MAX_COMPONENT_BYTES {
        return Err(AdmissionError::TooLarge {
            bytes: bytes.len() as u64,
            max: MAX_COMPONENT_BYTES,
        });
    }
    if bytes.starts_with(b"\x7fELF") {
        return Err(AdmissionError::NativeCode);
    }
    if bytes.starts_with(CORE) {
        return Err(AdmissionError::CoreModule);
    }
    if !bytes.starts_with(COMPONENT) {
        let found = match bytes.get(..8.min(bytes.len())) {
            Some([]) | None => "nothing, it is empty".to_owned(),
            Some(first) => format!("{first:02x?}"),
        };
        return Err(AdmissionError::NotWasm { found });
    }
    Ok(())
}

pub(super) fn check_contract(exports: &[String]) -> Result<String, AdmissionError> {
    let prefix = format!("{PACKAGE}/provider@");
    let Some(version) = exports.iter().find_map(|name| name.strip_prefix(&prefix)) else {
        let found = if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") };
        return Err(AdmissionError::NoProvider { found });
    };
    if version == "0.1" || version.starts_with("0.1.") {
        return Ok(version.to_owned());
    }
    Err(AdmissionError::UnknownContract { found: version.to_owned(), known: KNOWN_VERSIONS })
}

pub(super) fn check_resources(
    sandbox: &Sandbox,
    component: &wasmtime::component::Component,
) -> Result<(), AdmissionError> {
    // None: the component embeds others whose needs are only known at run time; the pool's own
    // limits hold then.
    let Some(needs) = component.resources_required() else { return Ok(()) };
    let at_most = |what: String, needed: u64, max: u64| {
        if needed > max { Err(AdmissionError::TooDemanding { what, max }) } else { Ok(()) }
    };
    let memory = needs.max_initial_memory_size.unwrap_or(0).saturating_mul(64 << 10);
    at_most(
        format!("{memory} bytes of memory to begin with"),
        memory,
        sandbox.options().max_memory_bytes,
    )?;
    at_most(format!("{} memories", needs.num_memories), u64::from(needs.num_memories), 4)?;
    at_most(format!("{} tables", needs.num_tables), u64::from(needs.num_tables), 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_components_are_told_apart() {
        let error = |bytes: &[u8]| check_format(bytes).unwrap_err().to_string();
        assert!(error(b"\x7fELF\x02\x01\x01\0").contains("native code"));
        assert!(error(b"\0asm\x01\0\0\0").contains("core module"));
        assert!(error(b"#!/bin/sh").contains("not WebAssembly"));
        assert!(error(b"").contains("empty"));
        assert!(check_format(b"\0asm\x0d\0\x01\0").is_ok());
    }

    #[test]
    fn contract_versions_are_told_apart() {
        let check = |name: &str| check_contract(&[name.to_owned()]);
        assert_eq!(check("paperclip:memory/provider@0.1.7").unwrap(), "0.1.7");
        let error = check("paperclip:memory/provider@9.0.0").unwrap_err().to_string();
        assert!(error.contains("9.0.0") && error.contains(KNOWN_VERSIONS), "{error}");
        assert!(matches!(
            check("wasi:cli/run@0.2.0").unwrap_err(),
            AdmissionError::NoProvider { .. }
        ));
    }
}

//! The mark that the test suite writes into the component's bytes, and its effect on calls without
//! a configuration.

use memhost_sdk::types::*;

/// The id of the rule to break follows the colon, padded with blanks.
static MARK: [u8; 32] = *b"memhost breaks a rule:          ";
const BEGIN: usize = b"memhost breaks a rule:".len();

/// Keeps the compiler from using the mark's value.
pub(crate) fn rule() -> String {
    let mark = std::hint::black_box(&MARK);
    String::from_utf8_lossy(&mark[BEGIN..]).trim().to_owned()
}

pub(crate) fn is(wanted: &str) -> bool {
    rule() == wanted
}

pub(crate) fn describe() -> Description {
    let rule = rule();
    let is = |wanted: &str| rule == wanted;
    assert!(!is("DSC-01"), "as the rule says");
    let key = if is("DSC-02") { "Wrong Key" } else { "wrong" };
    let version = if is("DSC-03") { "one" } else { env!("CARGO_PKG_VERSION") };
    let summary = if is("DSC-04") {
        format!("One of {} guests", crate::random())
    } else {
        "Breaks a rule".to_owned()
    };
    let schema = match is("DSC-05") {
        true => r#"{"type": "thing"}"#,
        false => {
            r#"{"type": "object", "properties": {"break": {"type": "string"},
                "url": {"type": "string"}}}"#
        }
    };
    let reason = if is("DSC-07") { " " } else { "Records are stored in it" };
    let capabilities =
        Capabilities { provider_managed_extraction: true, async_extraction: !is("CAP-05") };
    let description = Description {
        config_schema: Some(schema.to_owned()),
        capabilities,
        max_concurrency: if is("DSC-06") { 0 } else { 4 },
        declarations: Declarations {
            max_upsert: is("DSC-09").then_some(0),
            ..Declarations::default()
        },
        ..Description::new(key, version, &summary)
    };
    let address = if is("DSC-08") { "{{config:/nowhere}}" } else { "{{config:/url}}" };
    description
        .prefer(Permission::Storage(64 << 20), reason)
        .prefer(Permission::Http(HttpPermission::to(address)), "It might send something there")
}

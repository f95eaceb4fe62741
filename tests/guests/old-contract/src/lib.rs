//! `old-contract` exports `paperclip:memory/provider@9.0.0`: a version of the contract that the
//! host does not know. It must be refused at admission, with an error that names both versions.

#[allow(
    unsafe_code,
    unused_qualifications,
    unreachable_pub,
    missing_docs,
    clippy::all,
    reason = "generated"
)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package paperclip:memory@9.0.0;
            interface provider {
                describe: func() -> string;
            }
            world memory-provider {
                export provider;
            }
        ",
    });

    struct OldContract;

    impl exports::paperclip::memory::provider::Guest for OldContract {
        fn describe() -> String {
            "old-contract".to_owned()
        }
    }

    export!(OldContract);
}

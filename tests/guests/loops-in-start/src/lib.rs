//! `loops-in-start` computes forever while it is instantiated, before any call is possible. It must
//! be refused at admission, in bounded time.

#![allow(unsafe_code, reason = "the linker looks for the name")]

use well_behaved::Guest;

struct LoopsInStart;

impl Guest for LoopsInStart {
    const KEY: &str = "loops-in-start";
}

well_behaved::export!(LoopsInStart);

/// A core module's export of this name becomes part of the component's instantiation.
#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    loop {
        std::hint::black_box(());
    }
}

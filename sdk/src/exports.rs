//! From the generated interfaces to the author's traits. One instance of the provider lives for the
//! life of the component instance and is opened by the first call.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;

use crate::bindings;
use crate::types::*;
use crate::{Provider, host};

/// Represents the provider in the generated code. Only the export macros name it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Adapter<P>(PhantomData<P>);

thread_local! {
    static OPENED: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Calls the provider of this component instance. The first call opens it.
pub(crate) fn with_provider<P: Provider, R>(
    call: impl FnOnce(&mut P) -> Result<R, Error>,
) -> Result<R, Error> {
    OPENED.with_borrow_mut(|slot| {
        if slot.is_none() {
            crate::logging::init();
            let config = crate::check_config::<P>(&host::binding::config()).map_err(|errors| {
                let all: Vec<String> = errors
                    .iter()
                    .map(|error| format!("{}: {}", error.pointer, error.message))
                    .collect();
                Error::internal(format!(
                    "the binding's configuration does not fit: {}",
                    all.join("; ")
                ))
            })?;
            *slot = Some(Box::new(P::open(config)?));
        }
        match slot.as_mut().and_then(|opened| opened.downcast_mut::<P>()) {
            Some(provider) => call(provider),
            None => Err(Error::internal("two providers are exported by one component; export one")),
        }
    })
}

impl<P: Provider> bindings::provider::exports::paperclip::memory::provider::Guest for Adapter<P> {
    fn describe() -> Description {
        P::describe()
    }
    fn validate_config(config: String) -> Result<(), Vec<ConfigError>> {
        crate::check_config::<P>(&config).map(drop)
    }
    fn capture(request: CaptureRequest) -> Result<CaptureResponse, Error> {
        with_provider::<P, _>(|provider| provider.capture(request))
    }
    fn upsert_records(request: UpsertRequest) -> Result<UpsertResponse, Error> {
        with_provider::<P, _>(|provider| provider.upsert_records(request))
    }
    fn query(request: QueryRequest) -> Result<ContextBundle, Error> {
        with_provider::<P, _>(|provider| provider.query(request))
    }
    fn list_records(request: ListRequest) -> Result<ListPage, Error> {
        with_provider::<P, _>(|provider| provider.list_records(request))
    }
    fn get_record(id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        with_provider::<P, _>(|provider| provider.get_record(id, scope))
    }
    fn forget(request: ForgetRequest) -> Result<ForgetResponse, Error> {
        with_provider::<P, _>(|provider| provider.forget(request))
    }
}

/// Makes the component export the type as its memory provider. Write it once in the crate.
#[macro_export]
macro_rules! export {
    ($provider:ty) => {
        $crate::__export_world!($provider, bindings::provider, export_memory_provider);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_world {
    ($provider:ty, $($module:ident)::+, $export:ident) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code)]
        const _: () = {
            type Component = $crate::Adapter<$provider>;
    $crate::$($module)::+::$export!(Component with_types_in $crate::$($module)::+);
        };
    };
}

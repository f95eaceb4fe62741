//! From the generated interfaces to the author's traits. One instance of the provider lives for the life of the
//! component instance and is opened by the first call.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;

use crate::bindings;
use crate::types::*;
use crate::{Browse, Correction, Explain, Extraction, Migration, Profile, Provider, Review, Transfer, host};

/// Stands for the provider in the generated code. Only the export macros name it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Adapter<P>(PhantomData<P>);

thread_local! {
    static OPENED: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

fn with<P: Provider, R>(call: impl FnOnce(&mut P) -> Result<R, Error>) -> Result<R, Error> {
    OPENED.with_borrow_mut(|slot| {
        if slot.is_none() {
            crate::logging::init();
            let config = crate::check_config::<P>(&host::binding::config()).map_err(|errors| {
                let all: Vec<String> =
                    errors.iter().map(|error| format!("{}: {}", error.pointer, error.message)).collect();
                Error::internal(format!("the binding's configuration does not fit: {}", all.join("; ")))
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
        with::<P, _>(|provider| provider.capture(request))
    }
    fn upsert_records(request: UpsertRequest) -> Result<UpsertResponse, Error> {
        with::<P, _>(|provider| provider.upsert_records(request))
    }
    fn query(request: QueryRequest) -> Result<ContextBundle, Error> {
        with::<P, _>(|provider| provider.query(request))
    }
    fn list_records(request: ListRequest) -> Result<ListPage, Error> {
        with::<P, _>(|provider| provider.list_records(request))
    }
    fn get_record(id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        with::<P, _>(|provider| provider.get_record(id, scope))
    }
    fn forget(ids: Vec<RecordId>, scope: Scope) -> Result<ForgetResponse, Error> {
        with::<P, _>(|provider| provider.forget(ids, scope))
    }
}

impl<P: Correction> bindings::correction::exports::paperclip::memory::correction::Guest for Adapter<P> {
    fn correct(request: CorrectRequest) -> Result<CorrectResponse, Error> {
        with::<P, _>(|provider| provider.correct(request))
    }
}

impl<P: Profile> bindings::profile::exports::paperclip::memory::profile::Guest for Adapter<P> {
    fn get_profile(scope: Scope) -> Result<ProfileResponse, Error> {
        with::<P, _>(|provider| provider.get_profile(scope))
    }
}

impl<P: Extraction> bindings::extraction::exports::paperclip::memory::extraction::Guest for Adapter<P> {
    fn run_job(provider_job_id: String) -> Result<JobResult, Error> {
        with::<P, _>(|provider| provider.run_job(provider_job_id))
    }
    fn get_job(provider_job_id: String) -> Result<Option<ExtractionJob>, Error> {
        with::<P, _>(|provider| provider.get_job(provider_job_id))
    }
    fn list_jobs(scope: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error> {
        with::<P, _>(|provider| provider.list_jobs(scope, cursor, limit))
    }
    fn cancel_job(provider_job_id: String) -> Result<ExtractionJob, Error> {
        with::<P, _>(|provider| provider.cancel_job(provider_job_id))
    }
}

impl<P: Explain> bindings::explain::exports::paperclip::memory::explain::Guest for Adapter<P> {
    fn explain_query(request: QueryRequest) -> Result<Explanation, Error> {
        with::<P, _>(|provider| provider.explain_query(request))
    }
}

impl<P: Browse> bindings::browse::exports::paperclip::memory::browse::Guest for Adapter<P> {
    fn list_children(path: String, scope: Scope, cursor: Option<String>, limit: u32) -> Result<NodePage, Error> {
        with::<P, _>(|provider| provider.list_children(path, scope, cursor, limit))
    }
}

impl<P: Review> bindings::review::exports::paperclip::memory::review::Guest for Adapter<P> {
    fn list_pending(scope: Scope, cursor: Option<String>, limit: u32) -> Result<ListPage, Error> {
        with::<P, _>(|provider| provider.list_pending(scope, cursor, limit))
    }
    fn decide(id: RecordId, scope: Scope, decision: Decision) -> Result<Option<Snippet>, Error> {
        with::<P, _>(|provider| provider.decide(id, scope, decision))
    }
}

impl<P: Transfer> bindings::transfer::exports::paperclip::memory::transfer::Guest for Adapter<P> {
    fn export_records(scope: Scope, cursor: Option<String>) -> Result<Chunk, Error> {
        with::<P, _>(|provider| provider.export_records(scope, cursor))
    }
    fn import_records(scope: Scope, lines: String) -> Result<ImportReport, Error> {
        with::<P, _>(|provider| provider.import_records(scope, lines))
    }
}

impl<P: Migration> bindings::migration::exports::paperclip::memory::migration::Guest for Adapter<P> {
    fn migrate(from_version: String) -> Result<(), Error> {
        with::<P, _>(|provider| provider.migrate(&from_version))
    }
}

/// Makes the component export the type as its memory provider. Write it once in the crate.
#[macro_export]
macro_rules! export {
    ($provider:ty) => {
        $crate::__export_world!($provider, provider, export_memory_provider);
    };
}

/// Makes the component export the interface `correction`. The type implements [`Correction`].
#[macro_export]
macro_rules! export_correction {
    ($provider:ty) => {
        $crate::__export_world!($provider, correction, export_correction_provider);
    };
}

/// Makes the component export the interface `profile`. The type implements [`Profile`].
#[macro_export]
macro_rules! export_profile {
    ($provider:ty) => {
        $crate::__export_world!($provider, profile, export_profile_provider);
    };
}

/// Makes the component export the interface `extraction`. The type implements [`Extraction`].
#[macro_export]
macro_rules! export_extraction {
    ($provider:ty) => {
        $crate::__export_world!($provider, extraction, export_extraction_provider);
    };
}

/// Makes the component export the interface `explain`. The type implements [`Explain`].
#[macro_export]
macro_rules! export_explain {
    ($provider:ty) => {
        $crate::__export_world!($provider, explain, export_explain_provider);
    };
}

/// Makes the component export the interface `browse`. The type implements [`Browse`].
#[macro_export]
macro_rules! export_browse {
    ($provider:ty) => {
        $crate::__export_world!($provider, browse, export_browse_provider);
    };
}

/// Makes the component export the interface `review`. The type implements [`Review`].
#[macro_export]
macro_rules! export_review {
    ($provider:ty) => {
        $crate::__export_world!($provider, review, export_review_provider);
    };
}

/// Makes the component export the interface `transfer`. The type implements [`Transfer`].
#[macro_export]
macro_rules! export_transfer {
    ($provider:ty) => {
        $crate::__export_world!($provider, transfer, export_transfer_provider);
    };
}

/// Makes the component export the interface `migration`. The type implements [`Migration`].
#[macro_export]
macro_rules! export_migration {
    ($provider:ty) => {
        $crate::__export_world!($provider, migration, export_migration_provider);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_world {
    ($provider:ty, $module:ident, $export:ident) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code)]
        const _: () = {
            type Component = $crate::Adapter<$provider>;
    $crate::bindings::$module::$export!(Component with_types_in $crate::bindings::$module);
        };
    };
}

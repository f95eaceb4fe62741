//! The component with nothing around it: no limits, no epochs, no log. The floor of several
//! benchmarks.

use memhost_tests::guest_file;
use memhost_types::limits;
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

mod generated {
    #![allow(
        missing_docs,
        unsafe_code,
        unreachable_pub,
        clippy::all,
        clippy::pedantic,
        clippy::needless_pass_by_value
    )]
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "memory-provider",
        imports: { default: trappable },
        exports: { default: async },
    });
}

pub(crate) struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// An instance of the guest.
pub(crate) type Instance = (Store<State>, generated::MemoryProvider);

/// What it answers.
pub(crate) type Answer = generated::exports::paperclip::memory::provider::ContextBundle;

/// The component of the guest `echo`.
pub(crate) struct Raw {
    engine: Engine,
    pre: generated::MemoryProviderPre<State>,
    request: generated::exports::paperclip::memory::provider::QueryRequest,
}

impl Raw {
    pub(crate) fn new() -> Self {
        let mut config = Config::new();
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(8).max_memory_size(1 << 30);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).unwrap();
        let component = Component::from_file(&engine, guest_file("echo")).unwrap();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).unwrap();
        linker
            .instance("paperclip:memory/binding@0.1.0")
            .unwrap()
            .func_wrap("config", |_, (): ()| Ok(("{}".to_owned(),)))
            .unwrap();
        // `echo` calls none of the other imports.
        linker.define_unknown_imports_as_traps(&component).unwrap();
        let pre =
            generated::MemoryProviderPre::new(linker.instantiate_pre(&component).unwrap()).unwrap();
        let request = generated::exports::paperclip::memory::provider::QueryRequest {
            scope: generated::paperclip::memory::types::Scope {
                company_id: "acme".to_owned(),
                agent_id: None,
                actor_agent_id: None,
                project_id: None,
                issue_id: None,
                run_id: None,
                subject_id: None,
                session_key: None,
                namespace: None,
            },
            query: "hello".to_owned(),
            top_k: limits::DEFAULT_TOP_K,
            intent: generated::paperclip::memory::types::Intent::Answer,
            metadata_filter: None,
            token_budget: None,
        };
        Self { engine, pre, request }
    }

    pub(crate) async fn instance(&self) -> Instance {
        let state = State { wasi: WasiCtx::builder().build(), table: ResourceTable::new() };
        let mut store = Store::new(&self.engine, state);
        let provider = self.pre.instantiate_async(&mut store).await.unwrap();
        (store, provider)
    }

    pub(crate) async fn call(
        &self,
        store: &mut Store<State>,
        provider: &generated::MemoryProvider,
    ) -> Answer {
        let answer = provider
            .paperclip_memory_provider()
            .call_query(store, &self.request)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(answer.snippets.len(), 5);
        answer
    }
}

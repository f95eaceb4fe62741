//! What one warm query asks the allocator for.
#![allow(unsafe_code, missing_docs)]
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    static ALL: RefCell<Vec<(usize, String)>> = const { RefCell::new(Vec::new()) };
}
struct Counting;
fn note(size: usize, align: usize) {
    let on = ON.try_with(|on| on.replace(false)).unwrap_or(false);
    if on {
        let trace = std::backtrace::Backtrace::force_capture().to_string();
        let names: Vec<&str> = trace.lines().filter(|l| !l.trim().starts_with("at ")).map(|l| l.trim()).collect();
        let own: Vec<String> = names.iter().filter(|l| l.contains("memhost_") && !l.contains("costs")).take(3).map(|l| l.split_once(": ").map_or(*l, |p| p.1).to_owned()).collect();
        let first: Vec<String> = names.iter().filter(|l| !l.contains("costs::") && !l.contains("alloc") && !l.contains("backtrace")).take(3).map(|l| l.split_once(": ").map_or(*l, |p| p.1).to_owned()).collect();
        ALL.with(|all| all.borrow_mut().push((size, format!("[{align}] {} || {}", first.join(" < "), own.join(" < ")))));
        ON.with(|on| on.set(true));
    }
}
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 { note(layout.size(), layout.align()); unsafe { System.alloc(layout) } }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) { unsafe { System.dealloc(ptr, layout) } }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new: usize) -> *mut u8 { note(new, layout.align()); unsafe { System.realloc(ptr, layout, new) } }
}
#[global_allocator]
static A: Counting = Counting;

#[test]
fn warm() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use memhost_tests::*;
        let host = TestHost::with(&["echo"], |o| o.audit = memhost_core::Audit::Relaxed).await.unwrap();
        host.bind("acme", "echo", memhost_types::BindingLimits::default()).await.unwrap();
        for _ in 0..20 {
            host.service().operations().query(&caller(), query("acme", "hello")).await.unwrap();
        }
        let request = query("acme", "hello");
        let who = caller();
        ON.with(|on| on.set(true));
        let r = host.service().operations().query(&who, request).await;
        ON.with(|on| on.set(false));
        drop(r.unwrap());
        ALL.with(|all| {
            let all = all.borrow();
            println!("{} allocations, {} bytes", all.len(), all.iter().map(|a| a.0).sum::<usize>());
            for (size, at) in all.iter() { println!("{size:7} {at}"); }
        });
    });
}

//! What a host costs at least: a handler that reads the request, makes the raw call, and answers
//! JSON once the record of the operation is flushed, in groups, with bare sled.

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::raw::{Instance, Raw};

/// Instances at once, as the host's binding has in this benchmark.
const INSTANCES: usize = 8;

type Record = (Vec<u8>, oneshot::Sender<()>);

/// Writes records in groups: those that came during a flush are the next one.
fn write(directory: &Path, mut records: mpsc::UnboundedReceiver<Record>) {
    let db = sled::Config::new().path(directory).flush_every_ms(None).open().unwrap();
    let file = std::fs::File::open(directory.join("db")).unwrap();
    let mut number = 0_u64;
    while let Some(first) = records.blocking_recv() {
        let (mut batch, mut waiting) = (sled::Batch::default(), Vec::new());
        let rest = std::iter::from_fn(|| records.try_recv().ok());
        for (record, done) in std::iter::once(first).chain(rest) {
            number += 1;
            batch.insert(&number.to_be_bytes(), record);
            waiting.push(done);
        }
        db.apply_batch(batch).unwrap();
        db.flush().unwrap();
        file.sync_data().unwrap();
        waiting.into_iter().for_each(|done| done.send(()).unwrap_or_default());
    }
}

struct Floor {
    raw: Raw,
    idle: Mutex<Vec<Instance>>,
    permits: Semaphore,
    records: mpsc::UnboundedSender<Record>,
}

impl Floor {
    async fn query(&self, request: &Value) -> Value {
        let permit = self.permits.acquire().await.unwrap();
        let idle = self.idle.lock().unwrap().pop();
        let mut instance = match idle {
            Some(instance) => instance,
            None => self.raw.instance().await,
        };
        let answer = self.raw.call(&mut instance.0, &instance.1).await;
        self.idle.lock().unwrap().push(instance);
        drop(permit);
        let found: Vec<Value> = answer
            .snippets
            .into_iter()
            .map(|snippet| json!({"id": snippet.id, "text": snippet.text}))
            .collect();
        let record = json!({"request": request, "found": found}).to_string();
        let (sender, done) = oneshot::channel();
        self.records.send((record.into_bytes(), sender)).unwrap();
        done.await.unwrap();
        json!({"snippets": found})
    }
}

/// Its routes.
pub(crate) fn router(directory: &Path) -> Router {
    let (records, receiver) = mpsc::unbounded_channel();
    let directory = directory.to_owned();
    std::thread::spawn(move || write(&directory, receiver));
    let floor = Arc::new(Floor {
        raw: Raw::new(),
        idle: Mutex::default(),
        permits: Semaphore::new(INSTANCES),
        records,
    });
    Router::new().fallback(post(move |Json(request): Json<Value>| {
        let floor = Arc::clone(&floor);
        async move { Json(floor.query(&request).await) }
    }))
}

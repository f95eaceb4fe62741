//! At which binding the records of a request are.

use super::*;

fn both() -> [Arc<Binding>; 2] {
    [Arc::new(binding(1, "main")), Arc::new(binding(2, "second"))]
}

async fn store_row(room: &Room, id: &str, at: &Binding) {
    let row = RecordRow { binding_id: at.id, ..row(id, &Reader::Nobody) };
    room.put(room.records.write(&row, None).unwrap()).await;
}

#[tokio::test]
async fn the_only_binding_is_not_looked_up() {
    let room = Room::new().await;
    let [main, _] = both();
    let all = [Arc::clone(&main)];
    let found = room.records.binding_of(&all, Some(&main), &[handle("r")]).await.unwrap();
    assert_eq!(found, None);
}

#[tokio::test]
async fn the_row_names_the_binding() {
    let room = Room::new().await;
    let all = both();
    store_row(&room, "r1", &all[0]).await;
    store_row(&room, "r2", &all[1]).await;
    for active in [None, Some(&all[0]), Some(&all[1])] {
        for (id, key) in [("r1", "main"), ("r2", "second")] {
            let found = room.records.binding_of(&all, active, &[handle(id)]).await.unwrap();
            assert_eq!(found.unwrap().as_str(), key);
        }
        let found = room.records.binding_of(&all, active, &[handle("unknown")]).await.unwrap();
        assert_eq!(found, None);
    }
}

#[tokio::test]
async fn a_record_at_two_bindings_is_the_active_ones() {
    let room = Room::new().await;
    let all = both();
    store_row(&room, "r", &all[0]).await;
    store_row(&room, "r", &all[1]).await;
    let found = room.records.binding_of(&all, Some(&all[1]), &[handle("r")]).await.unwrap();
    assert_eq!(found.unwrap().as_str(), "second");
}

#[tokio::test]
async fn records_at_several_bindings_are_refused() {
    let room = Room::new().await;
    let all = both();
    store_row(&room, "r1", &all[0]).await;
    store_row(&room, "r2", &all[1]).await;
    let handles = [handle("r1"), handle("unknown"), handle("r2")];
    let error = room.records.binding_of(&all, Some(&all[0]), &handles).await.unwrap_err();
    assert_eq!(error.error.field.as_deref(), Some("handles"));
    assert!(error.error.message.contains("such as `main` and `second`"), "{:?}", error.error);
}

#[tokio::test]
async fn another_providers_record_is_at_none() {
    let room = Room::new().await;
    let all = both();
    store_row(&room, "r", &all[0]).await;
    let foreign = RecordHandle { provider_key: "q".parse().unwrap(), ..handle("r") };
    let found = room.records.binding_of(&all, Some(&all[0]), &[foreign]).await.unwrap();
    assert_eq!(found, None);
}

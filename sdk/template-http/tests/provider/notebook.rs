//! The service in memory, for native tests.

use std::cell::RefCell;
use std::rc::Rc;

use memhost_sdk::http::Failure;
use memhost_sdk::testing::http::{self, Answer, Sent};
use serde_json::{Value, json};

/// Its notes.
pub(crate) type Notes = Rc<RefCell<Vec<Value>>>;

/// Serves it in this thread.
pub(crate) fn serve() -> Notes {
    serve_behind(|_, answer| Ok(answer()))
}

/// Serves it behind something that changes requests and answers.
pub(crate) fn serve_behind(
    mut between: impl FnMut(&Sent, &mut dyn FnMut() -> Answer) -> Result<Answer, Failure> + 'static,
) -> Notes {
    let notes = Notes::default();
    let inner = Rc::clone(&notes);
    http::serve(move |sent| between(sent, &mut || answer(&mut inner.borrow_mut(), sent)));
    notes
}

fn answer(notes: &mut Vec<Value>, sent: &Sent) -> Answer {
    let path: Vec<&str> = sent.path.trim_matches('/').split('/').collect();
    let asked = |name: &str| {
        sent.query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    };
    let page = |found: Vec<&Value>| Answer::json(200, json!({"notes": found, "more": false}));
    match (sent.method, path.as_slice()) {
        ("GET", ["status"]) => Answer::json(200, json!({"status": "ok"})),
        ("POST", ["books", _, "notes"]) => {
            let mut note = sent.body.clone();
            note["id"] = json!(format!("note-{}", notes.len() + 1));
            notes.push(note.clone());
            Answer::json(201, note)
        }
        ("GET", ["books", _, "notes"]) => page(
            notes.iter().filter(|note| asked("key").is_none_or(|key| note["key"] == key)).collect(),
        ),
        ("GET", ["books", _, "notes", "search"]) => {
            let word = asked("q").unwrap_or_default();
            page(
                notes
                    .iter()
                    .filter(|note| note["text"].as_str().is_some_and(|text| text.contains(word)))
                    .collect(),
            )
        }
        (method, ["books", _, "notes", id]) => {
            let Some(at) = notes.iter().position(|note| note["id"] == *id) else {
                return Answer::json(404, json!({"error": "no such note"}));
            };
            match method {
                "DELETE" => drop(notes.remove(at)),
                "PUT" => notes[at]["text"] = sent.body["text"].clone(),
                _ => return Answer::json(200, notes[at].clone()),
            }
            Answer::json(200, json!({}))
        }
        _ => Answer::json(404, json!({"error": "no such route"})),
    }
}

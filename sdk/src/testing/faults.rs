//! Faults of a service, for native tests: each fault at each request of a call. [`hold`] tries them
//! on the calls of records, with a [`Stand`] of the service; [`hold_learnt`] does so for a service
//! that keeps only what it makes of a text.
//!
//! ```
//! use memhost_sdk::http::Client;
//! use memhost_sdk::testing::faults::{everywhere, serve};
//! use memhost_sdk::testing::http::Answer;
//!
//! everywhere(|number, fault| {
//!     let other_ids = |body: &str| body.replace("id-1", "id-2");
//!     let requests = serve(
//!         |_| Answer::json(200, serde_json::json!({"id": "id-1"})),
//!         number,
//!         fault,
//!         other_ids,
//!     );
//!     let client = Client::new("https://api.example.com").unwrap();
//!     drop(client.get("/notes/1").send());
//!     // From now on all is well.
//!     let sent = requests.stop();
//!     assert!(client.get("/notes/1").send().is_ok());
//!     sent
//! });
//! ```

mod suite;

use std::cell::Cell;
use std::rc::Rc;

use serde_json::json;

use super::http::{Answer, Sent, serve as serve_http};
use crate::http::{Failure, Phase};

pub use self::suite::{Stand, faulty, hold, hold_learnt};

/// The fate of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The status 429, and nothing done.
    Limited,
    /// The status 500, before or after the service did it.
    Fails(bool),
    /// No answer in time, before or after the service did it.
    Slow(bool),
    /// No connection.
    CutBefore,
    /// The service did it, and its answer is cut.
    CutInBody,
    /// The service did it and answers something that is not JSON.
    Nonsense,
    /// The service did it and answers other JSON.
    OtherShape,
    /// The service did it and answers with the ids of other things.
    OtherIds,
}

/// Every fault.
pub const ALL: [Fault; 10] = [
    Fault::Limited,
    Fault::Fails(false),
    Fault::Fails(true),
    Fault::Slow(false),
    Fault::Slow(true),
    Fault::CutBefore,
    Fault::CutInBody,
    Fault::Nonsense,
    Fault::OtherShape,
    Fault::OtherIds,
];

impl Fault {
    fn happen(
        self,
        answer: &mut dyn FnMut() -> Answer,
        other_ids: &dyn Fn(&str) -> String,
    ) -> Result<Answer, Failure> {
        let status =
            |status, message| Ok(Answer::json(status, json!({"error": {"message": message}})));
        match self {
            Self::Limited => return status(429, "rate limit"),
            Self::CutBefore => return Err(Failure::NotSent("connection refused".to_owned())),
            Self::Fails(false) => return status(500, "no"),
            Self::Slow(false) => {
                return Err(Failure::MaybeSent(Phase::Response, "took too long".to_owned()));
            }
            _ => {}
        }
        let done = answer();
        let text = |text: &str| {
            Ok(Answer { status: 200, headers: Vec::new(), body: text.as_bytes().to_vec() })
        };
        match self {
            Self::Fails(_) => status(500, "no"),
            Self::Slow(_) => Err(Failure::MaybeSent(Phase::Response, "took too long".to_owned())),
            Self::CutInBody => {
                Err(Failure::MaybeSent(Phase::Body, "the connection was cut".to_owned()))
            }
            Self::Nonsense => text("<html>502</html>"),
            Self::OtherShape => text(r#"{"status":"ok"}"#),
            _ => Ok(Answer {
                body: other_ids(&String::from_utf8_lossy(&done.body)).into_bytes(),
                ..done
            }),
        }
    }
}

/// The requests of a service with a fault.
#[derive(Debug, Clone)]
pub struct Requests {
    sent: Rc<Cell<usize>>,
    is_faulty: Rc<Cell<bool>>,
}

impl Requests {
    /// Counts from now on: the fault is at the request of that number after this call.
    pub fn start(&self) {
        self.sent.set(0);
        self.is_faulty.set(true);
    }

    /// How many there were. From now on no request has the fault.
    pub fn stop(&self) -> usize {
        self.is_faulty.set(false);
        self.sent.get()
    }
}

/// From now on this answers the requests of this thread, and the request of this number, from 0,
/// has the fault. `other_ids` changes every id in an answer.
pub fn serve(
    mut service: impl FnMut(&Sent) -> Answer + 'static,
    number: usize,
    fault: Fault,
    other_ids: impl Fn(&str) -> String + 'static,
) -> Requests {
    let requests = Requests { sent: Rc::default(), is_faulty: Rc::new(Cell::new(true)) };
    let counted = requests.clone();
    serve_http(move |sent| {
        let now = counted.sent.replace(counted.sent.get() + 1);
        let is_faulty = counted.is_faulty.get() && now == number;
        if is_faulty { fault.happen(&mut || service(sent), &other_ids) } else { Ok(service(sent)) }
    });
    requests
}

/// Each fault at each request of a call, which answers how many requests it made, until it makes no
/// request of that number.
///
/// # Panics
/// If it makes none, or more than 1,000.
pub fn everywhere(mut call: impl FnMut(usize, Fault) -> usize) {
    for fault in ALL {
        let mut number = 0;
        while call(number, fault) > number {
            number += 1;
            assert!(number < 1_000, "the call does not end");
        }
        assert!(number > 0, "the call sends no request");
    }
}

//! What the tests of this crate share: a clock that stands still until it is set, and tokens.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{Act, ActAs, Caller, CreateToken};
use memhost_ports::Clock;
use memhost_types::{CompanyId, OperationKind, Principal, Role, Scope, Token, TokenId};
use uuid::Uuid;

/// 2026-01-01T00:00:00Z.
pub(crate) const BEGIN: Timestamp = Timestamp::constant(1_767_225_600, 0);

pub(crate) const QUERY: Act = Act::Operate(OperationKind::Query);
pub(crate) const CAPTURE: Act = Act::Operate(OperationKind::Capture);
pub(crate) const EXPORT: Act = Act::Operate(OperationKind::Export);

/// A clock that stands still. What it calls random is a number that grows.
pub(crate) struct TestClock(Mutex<(Timestamp, u128)>);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new((BEGIN, 0))))
    }

    pub(crate) fn advance(&self, by: SignedDuration) {
        self.0.lock().0 += by;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.0.lock().0
    }

    fn random(&self) -> u128 {
        let mut now = self.0.lock();
        now.1 += 1;
        // `new_id` takes the first ten bytes.
        now.1 << 48
    }
}

pub(crate) fn company(name: &str) -> CompanyId {
    name.parse().unwrap()
}

pub(crate) fn acme() -> Scope {
    Scope::company(company("acme"))
}

pub(crate) fn request(body: &Value) -> CreateToken {
    serde_json::from_value(body.clone()).unwrap()
}

/// A token of the company `acme`, or of none where the role belongs to none.
pub(crate) fn token(role: Role) -> Token {
    let is_of_company = !matches!(role, Role::Operator | Role::Monitor);
    Token {
        id: TokenId(Uuid::nil()),
        name: "t".to_owned(),
        role,
        company_id: is_of_company.then(|| company("acme")),
        agent_id: (role == Role::Agent).then(|| "ada".parse().unwrap()),
        run_id: None,
        operations: None,
        expires_at: None,
        created_at: BEGIN,
        created_by: Principal::Operator,
        rotated_at: None,
        previous_value_until: None,
        last_used_at: None,
        revoked_at: None,
    }
}

pub(crate) fn caller(role: Role) -> Caller {
    Caller::of(&token(role))
}

/// The agent `ada`, perhaps in one run only or with some operations only.
pub(crate) fn ada(run: Option<&str>, operations: Option<Vec<Act>>) -> Caller {
    Caller::of(&Token { run_id: run.map(str::to_owned), operations, ..token(Role::Agent) })
}

/// An integration that acts for an agent.
pub(crate) fn as_agent(id: &str) -> Caller {
    acting(ActAs { agent_id: Some(id.parse().unwrap()), ..ActAs::default() })
}

/// An integration that acts for a person, perhaps with a role.
pub(crate) fn as_person(id: &str, role: Option<Role>) -> Caller {
    acting(ActAs { person_id: Some(id.to_owned()), role, ..ActAs::default() })
}

/// An integration that says only a role.
pub(crate) fn as_role(role: Role) -> Caller {
    acting(ActAs { role: Some(role), ..ActAs::default() })
}

pub(crate) fn acting(whom: ActAs) -> Caller {
    caller(Role::Integration).acting(whom).unwrap()
}

/// A request to make a token of a role, with what else is said of it.
pub(crate) fn asks(role: Role, more: Value) -> CreateToken {
    let mut body = json!({"name": "t", "role": role});
    if role == Role::Agent {
        body["agentId"] = json!("ada");
    }
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    request(&body)
}

//! Tokens in a store in memory, with a clock that is set.

use super::*;
use crate::Act;
use crate::testing::{BEGIN, QUERY, TestClock, asks, caller, company};
use jiff::SignedDuration;
use memhost_store::{MemoryStore, Tables};
use memhost_types::{Principal, Role};
use serde_json::json;

struct Host {
    store: Arc<MemoryStore>,
    clock: Arc<TestClock>,
    tokens: Tokens,
}

impl Host {
    async fn new() -> Self {
        Self::on(Arc::default(), TestClock::new()).await
    }

    async fn on(store: Arc<MemoryStore>, clock: Arc<TestClock>) -> Self {
        let tokens = Tokens::open(Arc::<MemoryStore>::clone(&store), clock.clone()).await.unwrap();
        Self { store, clock, tokens }
    }

    /// Another process with the same store, or this one after a restart.
    async fn again(&self) -> Self {
        Self::on(Arc::clone(&self.store), Arc::clone(&self.clock)).await
    }

    async fn make_of(&self, of: Option<&str>, request: CreateToken) -> NewToken {
        let of = of.map(company);
        let made = self.tokens.make(&Caller::operator(), of.as_ref(), request).await.unwrap();
        assert!(self.tokens.write(&made.1).await.unwrap());
        made.0
    }

    async fn make(&self) -> NewToken {
        self.make_of(Some("acme"), asks(Role::Auditor, json!({}))).await
    }

    async fn rotate(&self, id: TokenId, overlap_seconds: u32) -> NewToken {
        let request = RotateToken { overlap_seconds: Some(overlap_seconds) };
        let of = company("acme");
        let made = self.tokens.rotate(&Caller::operator(), Some(&of), id, request).await.unwrap();
        assert!(self.tokens.write(&made.1).await.unwrap());
        made.0
    }

    async fn revoke(&self, id: TokenId) -> Token {
        let (token, change) = self.tokens.revoke(Some(&company("acme")), id).await.unwrap();
        assert!(self.tokens.write(&change).await.unwrap());
        token
    }

    /// Why a value is not accepted. `None`: it is valid.
    fn refused(&self, value: &str) -> Option<&'static str> {
        match self.tokens.find(value) {
            Some(Known::Valid(_)) => None,
            Some(Known::Invalid(_, why)) => Some(why),
            None => Some("is unknown"),
        }
    }

    fn of_acme(&self) -> Vec<Token> {
        self.tokens.list(Some(&company("acme")))
    }

    async fn rows(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.store.scan(Table::Tokens, b"", None, 10_000).await.unwrap().entries
    }

    fn advance_hours(&self, hours: i64) {
        self.clock.advance(SignedDuration::from_hours(hours));
    }
}

#[tokio::test]
async fn a_value_finds_its_bearer() {
    let host = Host::new().await;
    let made = host.make_of(Some("acme"), asks(Role::Agent, json!({"runId": "r1"}))).await;
    let Some(Known::Valid(caller)) = host.tokens.find(&made.value) else { panic!() };
    assert_eq!(caller, Caller::of(&made.token));
    assert_eq!((caller.principal().to_string().as_str(), caller.run()), ("agent:ada", Some("r1")));
    for wrong in ["", "mh_", &made.value[..made.value.len() - 1], &format!("{} ", made.value)] {
        assert_eq!(host.tokens.find(wrong), None, "{wrong}");
    }
}

#[tokio::test]
async fn a_token_is_valid_once_it_is_durable() {
    let host = Host::new().await;
    let request = asks(Role::Operator, json!({}));
    let (made, change) = host.tokens.make(&Caller::operator(), None, request).await.unwrap();
    assert_eq!((host.tokens.find(&made.value), host.rows().await.len()), (None, 0));
    assert!(host.tokens.write(&change).await.unwrap());
    assert_eq!((host.refused(&made.value), host.rows().await.len()), (None, 1));
}

#[tokio::test]
async fn no_value_is_stored() {
    let host = Host::new().await;
    let made = host.make().await;
    let rotated = host.rotate(made.token.id, 60).await;
    let secret = |value: &str| value.strip_prefix("mh_").unwrap().as_bytes().to_vec();
    for (_, row) in host.rows().await {
        for value in [secret(&made.value), secret(&rotated.value)] {
            assert!(!row.windows(value.len()).any(|window| window == value));
        }
    }
    assert_eq!(made.value.len(), "mh_".len() + 43, "256 bits");
    assert_ne!(made.value, rotated.value);
}

#[tokio::test]
async fn a_token_says_who_made_it_and_when() {
    let host = Host::new().await;
    host.advance_hours(1);
    let admin = caller(Role::CompanyAdministrator);
    let (made, _) = host
        .tokens
        .make(&admin, Some(&company("acme")), asks(Role::Auditor, json!({})))
        .await
        .unwrap();
    assert_eq!(&made.token.created_by, admin.principal());
    assert_eq!(made.token.created_at, BEGIN + SignedDuration::from_hours(1));
}

#[tokio::test]
async fn nobody_makes_a_token_that_can_do_more() {
    let host = Host::new().await;
    let acme = company("acme");
    let made = async |by: &Caller, role| {
        host.tokens.make(by, Some(&acme), asks(role, json!({}))).await.map(drop)
    };
    assert!(made(&caller(Role::CompanyAdministrator), Role::Integration).await.is_ok());
    for (by, role) in [
        (caller(Role::Auditor), Role::CompanyAdministrator),
        (caller(Role::Agent), Role::Auditor),
        (caller(Role::Monitor), Role::Agent),
    ] {
        assert!(matches!(made(&by, role).await, Err(AccessError::Beyond(_))), "{role}");
    }
    let wrong = host.tokens.make(&Caller::operator(), None, asks(Role::Auditor, json!({}))).await;
    assert!(matches!(wrong, Err(AccessError::Field(_))));
}

#[tokio::test]
async fn a_token_expires_at_its_moment() {
    let host = Host::new().await;
    let end = BEGIN + SignedDuration::from_hours(1);
    let made = host.make_of(Some("acme"), asks(Role::Auditor, json!({"expiresAt": end}))).await;
    host.clock.advance(SignedDuration::from_secs(3_599));
    assert_eq!(host.refused(&made.value), None);
    host.clock.advance(SignedDuration::from_secs(1));
    assert_eq!(host.refused(&made.value), Some("has expired"));
}

#[tokio::test]
async fn a_revoked_token_stays_revoked_and_keeps_its_first_time() {
    let host = Host::new().await;
    let made = host.make().await;
    let revoked = host.revoke(made.token.id).await;
    assert_eq!(revoked.revoked_at, Some(BEGIN));
    assert_eq!(host.refused(&made.value), Some("was revoked"));
    host.advance_hours(1);
    assert_eq!(host.revoke(made.token.id).await.revoked_at, Some(BEGIN));
    assert_eq!(host.again().await.refused(&made.value), Some("was revoked"));
}

#[tokio::test]
async fn a_revoked_token_is_named_so_although_it_has_expired_too() {
    let host = Host::new().await;
    let end = BEGIN + SignedDuration::from_hours(1);
    let made = host.make_of(Some("acme"), asks(Role::Auditor, json!({"expiresAt": end}))).await;
    host.revoke(made.token.id).await;
    host.advance_hours(2);
    assert_eq!(host.refused(&made.value), Some("was revoked"));
}

#[tokio::test]
async fn a_rotated_token_is_the_same_with_another_value() {
    let host = Host::new().await;
    let made = host.make().await;
    host.advance_hours(1);
    let rotated = host.rotate(made.token.id, 0).await;
    assert_eq!(host.refused(&rotated.value), None);
    assert_eq!(host.tokens.find(&made.value), None);
    let expected = Token {
        rotated_at: Some(BEGIN + SignedDuration::from_hours(1)),
        last_used_at: rotated.token.last_used_at,
        ..made.token
    };
    assert_eq!(rotated.token, expected);
    assert_eq!(host.of_acme().len(), 1);
}

#[tokio::test]
async fn a_value_works_on_for_the_overlap_and_is_then_attributed() {
    let host = Host::new().await;
    let made = host.make().await;
    let rotated = host.rotate(made.token.id, 60).await;
    host.clock.advance(SignedDuration::from_secs(59));
    assert_eq!((host.refused(&made.value), host.refused(&rotated.value)), (None, None));
    host.clock.advance(SignedDuration::from_secs(1));
    let replaced = Some("has another value since it was rotated");
    assert_eq!((host.refused(&made.value), host.refused(&rotated.value)), (replaced, None));
    assert_eq!(host.again().await.refused(&made.value), replaced);
}

#[tokio::test]
async fn only_the_value_before_the_last_rotation_works_on() {
    let host = Host::new().await;
    let first = host.make().await;
    let second = host.rotate(first.token.id, 60).await;
    let third = host.rotate(first.token.id, 60).await;
    let refused = [&first, &second, &third].map(|made| host.refused(&made.value));
    assert_eq!(refused, [Some("is unknown"), None, None]);
}

#[tokio::test]
async fn a_revocation_ends_both_values_of_a_token() {
    let host = Host::new().await;
    let made = host.make().await;
    let rotated = host.rotate(made.token.id, 3_600).await;
    host.revoke(made.token.id).await;
    for value in [made.value, rotated.value] {
        assert_eq!(host.refused(&value), Some("was revoked"));
    }
}

#[tokio::test]
async fn a_revoked_token_gets_no_other_value() {
    let host = Host::new().await;
    let made = host.make().await;
    host.revoke(made.token.id).await;
    let of = company("acme");
    let rotated = host
        .tokens
        .rotate(&Caller::operator(), Some(&of), made.token.id, RotateToken::default())
        .await;
    assert!(matches!(rotated, Err(AccessError::Revoked { .. })));
}

#[tokio::test]
async fn nobody_rotates_a_token_that_can_do_more() {
    let host = Host::new().await;
    let more = host.make_of(Some("acme"), asks(Role::CompanyAdministrator, json!({}))).await;
    let narrow = Token {
        operations: Some(vec![QUERY, Act::Administer]),
        ..crate::testing::token(Role::CompanyAdministrator)
    };
    let rotated = host
        .tokens
        .rotate(&Caller::of(&narrow), Some(&company("acme")), more.token.id, RotateToken::default())
        .await;
    let Err(AccessError::Beyond(Denied { field, .. })) = rotated else { panic!() };
    assert_eq!(field, Some("role"));
    assert_eq!(host.refused(&more.value), None);
}

#[tokio::test]
async fn a_token_is_found_in_its_own_company_only() {
    let host = Host::new().await;
    let made = host.make().await;
    let id = made.token.id;
    for other in [Some(company("other")), Some(company("acm")), None] {
        let operator = Caller::operator();
        let rotated =
            host.tokens.rotate(&operator, other.as_ref(), id, RotateToken::default()).await;
        assert!(matches!(rotated, Err(AccessError::NotFound { .. })), "{other:?}");
        let revoked = host.tokens.revoke(other.as_ref(), id).await;
        assert!(matches!(revoked, Err(AccessError::NotFound { .. })), "{other:?}");
    }
    assert_eq!(host.refused(&made.value), None);
}

#[tokio::test]
async fn of_two_changes_at_once_one_is_made() {
    let host = Host::new().await;
    let made = host.make().await;
    let of = company("acme");
    let (_, revoke) = host.tokens.revoke(Some(&of), made.token.id).await.unwrap();
    let (rotated, rotate) = host
        .tokens
        .rotate(&Caller::operator(), Some(&of), made.token.id, RotateToken::default())
        .await
        .unwrap();
    assert!(host.tokens.write(&revoke).await.unwrap());
    assert!(!host.tokens.write(&rotate).await.unwrap());
    assert_eq!(host.tokens.find(&rotated.value), None, "a change that was not made has no value");
    assert_eq!(host.refused(&made.value), Some("was revoked"));
}

#[tokio::test]
async fn the_last_use_is_kept_to_the_hour_and_written_once_in_it() {
    let host = Host::new().await;
    let made = host.make().await;
    let last = || host.of_acme()[0].last_used_at;
    assert_eq!(last(), None);
    host.clock.advance(SignedDuration::from_mins(90));
    host.refused(&made.value);
    let hour = Some(BEGIN + SignedDuration::from_hours(1));
    assert_eq!(last(), hour, "it is seen before it is written");
    host.tokens.write_last_uses().await.unwrap();
    assert_eq!(host.again().await.of_acme()[0].last_used_at, hour);
    let rows = host.rows().await;
    host.clock.advance(SignedDuration::from_mins(20));
    host.refused(&made.value);
    host.tokens.write_last_uses().await.unwrap();
    assert_eq!(host.rows().await, rows, "nothing to write in the same hour");
}

#[tokio::test]
async fn a_value_that_is_not_accepted_is_no_use() {
    let host = Host::new().await;
    let made = host.make().await;
    host.revoke(made.token.id).await;
    host.advance_hours(5);
    host.refused(&made.value);
    assert_eq!(host.of_acme()[0].last_used_at, None);
}

#[tokio::test]
async fn a_last_use_does_not_undo_a_change_of_another_process() {
    let host = Host::new().await;
    let other = host.again().await;
    let made = host.make().await;
    let id = made.token.id;
    host.advance_hours(1);
    host.refused(&made.value);
    for (key, row) in host.rows().await {
        other.tokens.follow(&TableWrite::new(Table::Tokens, key, Some(row))).unwrap();
    }
    other.revoke(id).await;
    host.tokens.write_last_uses().await.unwrap();
    assert_eq!(host.again().await.refused(&made.value), Some("was revoked"));
}

#[tokio::test]
async fn a_restart_keeps_every_token() {
    let host = Host::new().await;
    let of_acme = host.make().await;
    let operators = host.make_of(None, asks(Role::Operator, json!({}))).await;
    let after = host.again().await;
    assert_eq!(
        (after.of_acme(), after.tokens.list(None)),
        (host.of_acme(), host.tokens.list(None))
    );
    assert_eq!((after.refused(&of_acme.value), after.refused(&operators.value)), (None, None));
}

#[tokio::test]
async fn a_list_is_one_companys_oldest_first() {
    let host = Host::new().await;
    let mut made = Vec::new();
    for name in ["b", "a", "c"] {
        host.clock.advance(SignedDuration::from_secs(1));
        host.make_of(Some("acme2"), asks(Role::Auditor, json!({}))).await;
        made.push(host.make_of(Some("acme"), asks(Role::Auditor, json!({"name": name}))).await);
    }
    host.make_of(None, asks(Role::Monitor, json!({}))).await;
    let names: Vec<_> = host.of_acme().into_iter().map(|token| token.name).collect();
    assert_eq!(names, ["b", "a", "c"]);
    assert_eq!(host.tokens.list(None).len(), 1);
    assert!(host.tokens.list(Some(&company("nobody"))).is_empty());
}

#[tokio::test]
async fn an_erased_companys_tokens_are_unknown_and_its_namesakes_are_valid() {
    let host = Host::new().await;
    let gone = host.make().await;
    let namesake = host.make_of(Some("acme2"), asks(Role::Auditor, json!({}))).await;
    let operators = host.make_of(None, asks(Role::Operator, json!({}))).await;
    host.tokens.forget(&company("acme"));
    assert_eq!(host.tokens.find(&gone.value), None);
    assert!(host.of_acme().is_empty());
    for made in [namesake, operators] {
        assert_eq!(host.refused(&made.value), None);
    }
}

#[tokio::test]
async fn a_token_of_another_process_is_known_and_a_removed_one_is_not() {
    let (here, there) = {
        let here = Host::new().await;
        let there = here.again().await;
        (here, there)
    };
    let made = here.make().await;
    assert_eq!(there.tokens.find(&made.value), None);
    let (key, row) = here.rows().await.remove(0);
    there.tokens.follow(&TableWrite::new(Table::Tokens, key.clone(), Some(row))).unwrap();
    assert_eq!(there.refused(&made.value), None);
    there.tokens.follow(&TableWrite::new(Table::Tokens, key, None)).unwrap();
    assert_eq!(there.tokens.find(&made.value), None);
}

#[tokio::test]
async fn rows_of_other_tables_are_nothing_to_tokens() {
    let host = Host::new().await;
    let made = host.make().await;
    let (key, _) = host.rows().await.remove(0);
    for new in [None, Some(b"not a token".to_vec())] {
        host.tokens.follow(&TableWrite::new(Table::Bindings, key.clone(), new)).unwrap();
    }
    assert_eq!(host.refused(&made.value), None);
    let unreadable = TableWrite::new(Table::Tokens, key, Some(b"not a token".to_vec()));
    assert!(host.tokens.follow(&unreadable).is_err());
}

#[tokio::test]
async fn a_token_that_has_ended_is_kept_for_thirty_days() {
    let host = Host::new().await;
    let (ended, valid) = (host.make().await, host.make().await);
    host.revoke(ended.token.id).await;
    host.advance_hours(30 * 24 - 1);
    host.tokens.drop_ended(None).await.unwrap();
    assert_eq!(host.refused(&ended.value), Some("was revoked"));
    host.advance_hours(1);
    host.tokens.drop_ended(Some(&company("other"))).await.unwrap();
    assert_eq!(host.of_acme().len(), 2, "only of the company that is named");
    host.tokens.drop_ended(Some(&company("acme"))).await.unwrap();
    assert_eq!(host.of_acme(), [valid.token]);
    assert_eq!((host.tokens.find(&ended.value), host.rows().await.len()), (None, 1));
}

#[tokio::test]
async fn a_company_keeps_the_thousand_that_ended_last() {
    let host = Host::new().await;
    for number in 0..1_003 {
        let end = BEGIN + SignedDuration::from_secs(number + 1);
        let request = asks(Role::Auditor, json!({"name": format!("{number}"), "expiresAt": end}));
        let stored = host.stored(request).await;
        host.tokens.all.write().put(stored);
    }
    host.advance_hours(1);
    host.tokens.drop_ended(None).await.unwrap();
    let left = host.of_acme();
    assert_eq!(left.len(), 1_000);
    assert!(left.iter().all(|token| !["0", "1", "2"].contains(&token.name.as_str())));
}

#[tokio::test]
async fn one_call_removes_five_hundred_at_most() {
    let host = Host::new().await;
    for _ in 0..501 {
        let end = BEGIN + SignedDuration::from_secs(1);
        let stored = host.stored(asks(Role::Auditor, json!({"expiresAt": end}))).await;
        host.tokens.all.write().put(stored);
    }
    host.advance_hours(31 * 24);
    for left in [1, 0] {
        host.tokens.drop_ended(None).await.unwrap();
        assert_eq!(host.of_acme().len(), left);
    }
}

#[tokio::test]
async fn a_company_has_ten_thousand_valid_tokens_at_most() {
    let host = Host::new().await;
    let end = BEGIN + SignedDuration::from_hours(1);
    for _ in 0..MAX_TOKENS {
        let stored = host.cached(asks(Role::Auditor, json!({"expiresAt": end})));
        host.tokens.all.write().put(stored);
    }
    let one_more = async |name: &str| {
        let of = company(name);
        host.tokens.make(&Caller::operator(), Some(&of), asks(Role::Auditor, json!({}))).await
    };
    let Err(AccessError::Field(error)) = one_more("acme").await else { panic!() };
    assert!(error.to_string().contains("at most 10000 valid tokens"), "{error}");
    assert!(one_more("other").await.is_ok());
    host.advance_hours(1);
    assert!(one_more("acme").await.is_ok(), "those that have ended are not counted");
}

impl Host {
    /// A token as it would be stored.
    fn cached(&self, request: CreateToken) -> Stored {
        let token = Token {
            id: TokenId(new_id(&*self.clock)),
            name: request.name,
            expires_at: request.expires_at,
            created_by: Principal::Operator,
            ..crate::testing::token(request.role)
        };
        let digest = blake3::hash(token.id.0.as_bytes()).to_hex().to_string();
        Stored { token, digest, previous: None }
    }

    /// The same, with its row.
    async fn stored(&self, request: CreateToken) -> Stored {
        let stored = self.cached(request);
        let change = self.tokens.change(None, &stored).await.unwrap();
        assert!(store::write(&*self.store, &[change]).await.unwrap());
        stored
    }
}

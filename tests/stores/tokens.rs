//! Access tokens: created, accepted, expired and revoked tokens, and the owner's token.

use std::fs;
use std::time::Duration;

use flowstone_engine::token::{Scope, TokenKind, TokenLimits};
use flowstone_engine::tokens::{NewToken, Unaccepted};

use super::STORE;
use crate::bench::{Bench, block_on};

fn service(name: &str, scopes: &[Scope]) -> NewToken {
    NewToken {
        name: name.to_owned(),
        kind: TokenKind::Service,
        scopes: scopes.to_vec(),
        limits: TokenLimits {
            flows: vec!["pay-*".to_owned(), "refund".to_owned()],
            ..TokenLimits::default()
        },
        roles: vec!["finance".to_owned()],
        subject: None,
        ttl: Some(Duration::from_secs(60)),
    }
}

#[test]
fn a_token_is_stored_without_its_secret_and_accepted_until_it_expires() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let new = service("ci", &[Scope::Run, Scope::Read, Scope::Run]);
    let (token, text) = block_on(engine.create_token(new, None)).expect("a token");
    assert_eq!(token.scopes, [Scope::Read, Scope::Run]);
    let accepted = block_on(engine.accept_token(&text.reveal())).expect("the store answers");
    assert_eq!(accepted, Ok(token.clone()));

    let listed = block_on(engine.tokens(None)).expect("a list");
    assert_eq!(listed.len(), 1);
    assert!(listed[0].used_ms.is_some(), "its use is noted");
    assert_eq!(listed[0].limits, token.limits);
    assert_eq!(listed[0].roles, token.roles);

    bench.clock.advance(60_000);
    let late = block_on(engine.accept_token(&text.reveal())).expect("the store answers");
    assert_eq!(late, Err(Unaccepted::Expired));
}

#[test]
fn a_wrong_secret_an_unknown_id_and_a_revoked_token_are_not_accepted() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let (one, text) =
        block_on(engine.create_token(service("one", &[Scope::Run]), None)).expect("a token");
    let (_, other) =
        block_on(engine.create_token(service("other", &[Scope::Run]), None)).expect("a token");
    let accept = |text: &str| block_on(engine.accept_token(text)).expect("the store answers");

    let (text, other) = (text.reveal(), other.reveal());
    let secret = |text: &str| text.splitn(3, '_').nth(2).unwrap_or_default().to_owned();
    let mixed = format!("fst_{}_{}", one.id, secret(&other));
    assert_eq!(accept(&mixed), Err(Unaccepted::Unknown));
    let unknown = format!("fst_000000000000_{}", secret(&text));
    assert_eq!(accept(&unknown), Err(Unaccepted::Unknown));
    assert_eq!(accept("owner"), Err(Unaccepted::Malformed));

    block_on(engine.revoke_token(&one.id, None)).expect("it is revoked");
    assert_eq!(accept(&text), Err(Unaccepted::Revoked));
    let again = block_on(engine.revoke_token(&one.id, None)).expect_err("it was revoked before");
    assert_eq!(again.code(), "E1003");

    let (good, _) =
        block_on(engine.create_token(service("good", &[Scope::Run]), None)).expect("a token");
    let ids = [&one.id, &good.id, "000000000000"]
        .map(str::to_owned)
        .to_vec();
    let revoked = block_on(engine.revoked_tokens(ids)).expect("the store answers");
    assert_eq!(revoked, [one.id, "000000000000".to_owned()]);
}

#[test]
fn incomplete_tokens_are_refused() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let code = |new: NewToken| match block_on(engine.create_token(new, None)) {
        Ok(_) => "created",
        Err(error) => error.code(),
    };
    assert_eq!(code(service("a", &[])), "E1001");
    assert_eq!(code(service("", &[Scope::Run])), "E1001");
    assert_eq!(code(service("two\nlines", &[Scope::Run])), "E1001");
    let user = NewToken {
        kind: TokenKind::User,
        ..service("ada", &[])
    };
    assert_eq!(code(user.clone()), "E1001");
    let user = NewToken {
        subject: Some("ada@example.com".to_owned()),
        ..user
    };
    assert_eq!(code(user), "created");
    assert_eq!(block_on(engine.tokens(None)).expect("a list").len(), 1);
}

#[test]
fn the_owners_token_is_kept_in_a_file_and_replaced_with_it() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let file = bench.home.path().join("home").join("owner.token");
    fs::create_dir_all(bench.home.path().join("home")).expect("the folder of the project's data");
    let first = block_on(engine.owner_token()).expect("a token");
    assert_eq!(
        block_on(engine.owner_token()).expect("the same token"),
        first
    );
    let text = fs::read_to_string(&file).expect("the file");
    assert_eq!(text.trim_end(), first.reveal());

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode));
        let found = fs::metadata(&file).expect("the file").permissions().mode();
        assert_eq!(found & 0o777, 0o600);
        mode(0o640).expect("it is opened to others");
        let refused = block_on(engine.owner_token()).expect_err("others can read it");
        assert_eq!(refused.code(), "E1004");
        mode(0o600).expect("it is closed");
    }

    fs::remove_file(&file).expect("it is removed");
    let second = block_on(engine.owner_token()).expect("another token");
    assert_ne!(second, first);
    let old = block_on(engine.accept_token(&first.reveal())).expect("the store answers");
    assert_eq!(old, Err(Unaccepted::Revoked));
}

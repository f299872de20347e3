//! Every kind of proof with the right text, and with each way in which it can be wrong. The signatures of GitHub, Slack
//! and Standard Webhooks are those of their documentation; the others were made with other programs.

use super::*;

const BODY: &str = r#"{"test": 2432232314}"#;
const NOW_MS: i64 = 1_614_265_330_000;
const T: &str = "1614265330";
const KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+evkZBR8wQLZIyTQmdknwaUOQtV6
CKEW/+wKKYGdjGVwuvfRKIiQKmoMHWet0QMSPIWatpv46UMck4STDUt+7g==
-----END PUBLIC KEY-----";
const ECDSA: &str = "MEYCIQCnpKQFb3otGmkJix6w5N1Lh668U4uGSDIguvXu4sjVQgIhAIrVNL0ZvmOdB9hPc4OxuvoO9YNf7RTXhG+3rWH5JO1p";
const STANDARD_KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const STANDARD_SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

/// Verifies `headers`, each `name: value`, and returns `ok` or the reason against it.
fn verified_at(auth: &str, secrets: &[&str], headers: &[&str], body: &str, now_ms: i64) -> String {
    let auth = crate::codec::decode(auth).expect("EDN");
    let proof = Proof::read(&auth).expect("a proof");
    let secrets: Vec<String> = secrets.iter().map(|it| (*it).to_owned()).collect();
    let (mut named, mut query) = (Vec::new(), Vec::new());
    for line in headers {
        if let Some((name, value)) = line.strip_prefix('?').and_then(|it| it.split_once('=')) {
            query.push((name.to_owned(), value.to_owned()));
        } else if let Some((name, value)) = line.split_once(": ") {
            named.push((name.to_owned(), value.as_bytes().to_vec()));
        }
    }
    let request = Presented {
        headers: &named,
        query: &query,
        body: body.as_bytes(),
        address: Some("10.1.2.3".parse().expect("an address")),
        now_ms,
    };
    match verify(&proof, &secrets, request) {
        Ok(Proven { signed: Some(_) }) => "ok signed".to_owned(),
        Ok(Proven { signed: None }) => "ok".to_owned(),
        Err(error) => error.name().to_owned(),
    }
}

fn verified(auth: &str, secrets: &[&str], headers: &[&str]) -> String {
    verified_at(auth, secrets, headers, BODY, NOW_MS)
}

#[track_caller]
fn check(auth: &str, secrets: &[&str], rows: &[(&[&str], &str)]) {
    for (headers, expected) in rows {
        assert_eq!(
            verified(auth, secrets, headers),
            *expected,
            "{auth} {headers:?}"
        );
    }
}

#[test]
fn keys_and_tokens_must_be_equal() {
    let key = "{:type :api-key :secret-ref :k}";
    check(
        key,
        &["s1", "s2"],
        &[
            (&["x-api-key: s1"], "ok"),
            (&["x-api-key: s2"], "ok"),
            (&["x-api-key: s3"], "wrong"),
            (&["x-api-key: s"], "wrong"),
            (&["x-api-key: "], "wrong"),
            (&["x-api-key: s1", "x-api-key: s1"], "twice"),
            (&["?x-api-key=s1"], "missing"),
            (&[], "missing"),
        ],
    );
    check(
        "{:type :api-key :header \"X-Own\" :secret-ref :k}",
        &["s1"],
        &[(&["x-own: s1"], "ok"), (&["x-api-key: s1"], "missing")],
    );
    check(
        "{:type :api-key :location :query :param \"key\" :secret-ref :k}",
        &["s1"],
        &[
            (&["?key=s1"], "ok"),
            (&["?key=s2"], "wrong"),
            (&["?key=s1", "?key=s1"], "twice"),
            (&["key: s1"], "missing"),
        ],
    );
    check(
        "{:type :bearer :secret-ref :k}",
        &["s1"],
        &[
            (&["authorization: Bearer s1"], "ok"),
            (&["authorization: bearer s1"], "ok"),
            (&["authorization: Bearer s2"], "wrong"),
            (&["authorization: Basic s1"], "malformed"),
            (&["authorization: s1"], "malformed"),
            (
                &["authorization: Bearer s1", "authorization: Bearer s1"],
                "twice",
            ),
        ],
    );
    check(
        "{:type :basic :username \"ada\" :secret-ref :k}",
        &["s1"],
        &[
            (&["authorization: Basic YWRhOnMx"], "ok"),
            (&["authorization: Basic YWRhOnMy"], "wrong"),
            (&["authorization: Basic Ym9iOnMx"], "wrong"),
            (&["authorization: Basic ???"], "malformed"),
            (&["authorization: Bearer YWRhOnMx"], "malformed"),
        ],
    );
}

#[test]
fn a_signature_of_the_body_fits_every_bit() {
    let plain = "{:type :hmac-sha256 :secret-ref :k}";
    let good = "x-signature: hty4TLcDTcMNEkNXKzAK6CI+8G9KiW9n1jLSmotHaVM=";
    check(
        plain,
        &["old", "s1"],
        &[
            (&[good], "ok signed"),
            (
                &["x-signature: hty4TLcDTcMNEkNXKzAK6CI+8G9KiW9n1jLSmotHaVN="],
                "malformed",
            ),
            (
                &["x-signature: hty4TLcDTcMNEkNXKzAK6CI+8G9KiW9n1jLSmotHaVQ="],
                "wrong",
            ),
            (
                &["x-signature: hty4TLcDTcMNEkNXKzAK6CI+8G9KiW9n1jLSmotHaVM"],
                "malformed",
            ),
            (&["x-signature: hty4"], "wrong"),
            (&[good, good], "twice"),
            (&[], "missing"),
        ],
    );
    assert_eq!(verified(plain, &["s2"], &[good]), "wrong");
    assert_eq!(
        verified_at(plain, &["s1"], &[good], "{\"test\": 2432232315}", NOW_MS),
        "wrong"
    );

    let digest = "86dcb84cb7034dc30d1243572b300ae8223ef06f4a896f67d632d29a8b476953";
    let github = "{:type :github :secret-ref :k}";
    check(
        github,
        &["s1"],
        &[
            (
                &[&format!("x-hub-signature-256: sha256={digest}")],
                "ok signed",
            ),
            (
                &[&format!(
                    "x-hub-signature-256: sha256={}",
                    digest.to_uppercase()
                )],
                "ok signed",
            ),
            (&[&format!("x-hub-signature-256: {digest}")], "malformed"),
            (
                &[&format!("x-hub-signature-256: sha256={}2", &digest[..63])],
                "wrong",
            ),
            (
                &[&format!("x-hub-signature-256: sha256={}", &digest[..63])],
                "malformed",
            ),
            (&["x-hub-signature-256: sha256="], "malformed"),
            (&[&format!("x-hub-signature: sha1={digest}")], "missing"),
        ],
    );
    let documented = "x-hub-signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    assert_eq!(
        verified_at(
            github,
            &["It's a Secret to Everybody"],
            &[documented],
            "Hello, World!",
            0
        ),
        "ok signed"
    );
}

#[test]
fn a_signature_with_a_time_has_a_window() {
    let auth = |more: &str| {
        format!(
            "{{:type :signature :signature-header \"X-Sig\" :timestamp-header \"X-Time\" :signed-message \
             :timestamp-payload :secret-ref :k {more}}}"
        )
    };
    let time = format!("x-time: {T}");
    let sig = "x-sig: Ieh3xBoJhHogQ5bQ31FeevLqn9wTvWOhv3QHQfuoGn8=";
    let hex = "x-sig: v=249244263db3362d0564242d88e01ce8eceb74259a6a38784e7a3b3bf1584673";
    let plain = auth("");
    check(
        &plain,
        &["s1"],
        &[
            (&[&time, sig], "ok signed"),
            (&[sig], "missing"),
            (&[&time, &time, sig], "twice"),
            (&["x-time: 1614265331", sig], "wrong"),
            (&["x-time: 1614265330.0", sig], "malformed"),
            (&["x-time: -1614265330", sig], "malformed"),
            (&["x-time: +1614265330", sig], "malformed"),
            (&["x-time: ", sig], "malformed"),
            (&["x-time: 99999999999999999999", sig], "malformed"),
        ],
    );
    for (now_ms, expected) in [
        (NOW_MS + 300_000, "ok signed"),
        (NOW_MS + 300_001, "late"),
        (NOW_MS - 300_000, "ok signed"),
        (NOW_MS - 300_001, "late"),
    ] {
        assert_eq!(
            verified_at(&plain, &["s1"], &[&time, sig], BODY, now_ms),
            expected
        );
    }
    let separated = auth(":separator \".\" :signature-format :hex :signature-prefix \"v=\"");
    check(&separated, &["s1"], &[(&[&time, hex], "ok signed")]);
    let short = auth(":timestamp-max-skew-ms 1000");
    assert_eq!(
        verified_at(&short, &["s1"], &[&time, sig], BODY, NOW_MS + 1001),
        "late"
    );
    // Thirteen digits are milliseconds; the signature is over other digits then.
    assert_eq!(
        verified(&plain, &["s1"], &["x-time: 1614265330000", sig]),
        "wrong"
    );
}

#[test]
fn a_signature_is_verified_with_a_public_key() {
    let auth = "{:type :signature :algo :ecdsa-p256 :signature-header \"X-Sig\" :timestamp-header \"X-Time\" \
                :signed-message :timestamp-payload :public-key-ref :k}";
    let (time, sig) = (format!("x-time: {T}"), format!("x-sig: {ECDSA}"));
    let bare: String = KEY.lines().filter(|it| !it.starts_with('-')).collect();
    for key in [KEY, &bare] {
        assert_eq!(verified(auth, &[key], &[&time, &sig]), "ok signed");
    }
    check(
        auth,
        &[KEY],
        &[
            (&[&time, &sig.replace("MEYC", "MEYD")], "wrong"),
            (&[&time, "x-sig: AAAA"], "wrong"),
            (&["x-time: 1614265329", &sig], "wrong"),
        ],
    );
    assert_eq!(verified(auth, &["no key"], &[&time, &sig]), "bad-key");
    assert_eq!(
        verified(auth, &["no key", KEY], &[&time, &sig]),
        "ok signed"
    );
}

#[test]
fn presets_take_what_their_senders_send() {
    let v1 = "98a6304ac7cd966786ee1b93ad76319d9cd63829827fa0f93cb3e367cf67086d";
    let other = "0".repeat(64);
    let stripe = |text: &str| format!("stripe-signature: {text}");
    check(
        "{:type :stripe :secret-ref :k}",
        &["whsec_test"],
        &[
            (&[&stripe(&format!("t={T},v1={v1}"))], "ok signed"),
            (
                &[&stripe(&format!("t={T},v1={other},v1={v1},v0={other}"))],
                "ok signed",
            ),
            (&[&stripe(&format!("t={T},v1={other}"))], "wrong"),
            (&[&stripe(&format!("t={T},v0={v1}"))], "missing"),
            (&[&stripe(&format!("v1={v1}"))], "missing"),
            (&[&stripe(&format!("t={T},t={T},v1={v1}"))], "twice"),
            (&[&stripe(&format!("t=1614265331,v1={v1}"))], "wrong"),
            (&[&stripe(&format!("t=1614000000,v1={v1}"))], "late"),
            (&[&stripe("hello")], "malformed"),
        ],
    );
    let slack =
        "x-slack-signature: v0=da3503f538bb974377bdb02cbe1c69bb69dae0796a4fb0ede1a611f5818d6d14";
    let time = format!("x-slack-request-timestamp: {T}");
    check(
        "{:type :slack :secret-ref :k}",
        &["slack-secret"],
        &[
            (&[slack, &time], "ok signed"),
            (&[&slack.replace("v0=", "v1="), &time], "malformed"),
            (&[&slack.replace("14", "15"), &time], "wrong"),
            (&[slack, "x-slack-request-timestamp: 1614000000"], "late"),
            (&[slack], "missing"),
        ],
    );
    let documented = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
                      channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&\
                      response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F\
                      96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    assert_eq!(
        verified_at(
            "{:type :slack :secret-ref :k}",
            &["8f742231b10e8888abcd99yyyzzz85a5"],
            &[
                "x-slack-signature: v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
                "x-slack-request-timestamp: 1531420618",
            ],
            documented,
            1_531_420_618_000
        ),
        "ok signed"
    );
}

#[test]
fn standard_webhooks_sign_id_time_and_body() {
    let id = "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek";
    let time = format!("webhook-timestamp: {T}");
    let signed = |text: &str| format!("webhook-signature: {text}");
    let good = signed(STANDARD_SIGNATURE);
    check(
        "{:type :standard-webhooks :secret-ref :k}",
        &[STANDARD_KEY],
        &[
            (&[id, &time, &good], "ok signed"),
            (
                &[
                    id,
                    &time,
                    &signed(&format!("v2,AAAA v1,AAAA {STANDARD_SIGNATURE}")),
                ],
                "ok signed",
            ),
            (&[id, &time, &signed("v1,AAAA")], "wrong"),
            (&[id, &time, &signed("AAAA")], "malformed"),
            (&[id, &time, &signed("")], "missing"),
            (&["webhook-id: msg_other", &time, &good], "wrong"),
            (&[&time, &good], "missing"),
            (&[id, "webhook-timestamp: 1614000000", &good], "late"),
        ],
    );
    assert_eq!(
        verified(
            "{:type :standard-webhooks :secret-ref :k}",
            &["whsec_?"],
            &[id, &time, &good]
        ),
        "bad-key"
    );
}

#[test]
fn addresses_are_compared_by_their_range() {
    let allowed = |list: &str| {
        verified(
            &format!("{{:type :ip-allowlist :allow [{list}]}}"),
            &[],
            &["x-forwarded-for: 192.0.2.1"],
        )
    };
    for (list, expected) in [
        ("\"10.1.2.3\"", "ok"),
        ("\"10.0.0.0/8\"", "ok"),
        ("\"192.0.2.1\" \"10.1.2.0/24\"", "ok"),
        ("\"0.0.0.0/0\"", "ok"),
        ("\"10.1.2.4\"", "address"),
        ("\"11.0.0.0/8\"", "address"),
        ("\"192.0.2.1\"", "address"),
        ("\"::/0\"", "address"),
    ] {
        assert_eq!(allowed(list), expected, "{list}");
    }
}

#[test]
fn incomplete_proofs_are_not_read() {
    for (auth, expected) in [
        ("{}", "`:auth` needs a `:type`"),
        ("{:type :magic}", "`:auth` has no type `:magic`"),
        (
            "{:type :bearer}",
            "`:auth` of type `:bearer` needs `:secret-ref`",
        ),
        (
            "{:type :github :secret-ref []}",
            "`:auth` of type `:github` needs `:secret-ref`",
        ),
        (
            "{:type :api-key :secret-ref :k :location :query}",
            "a key in the query needs its `:param`",
        ),
        (
            "{:type :signature :secret-ref :k}",
            "`:auth` of type `:signature` needs its `:signature-header`",
        ),
        (
            "{:type :signature :algo :ecdsa-p256 :secret-ref :k :signature-header \"x\"}",
            "this `:auth` of type `:signature` needs `:public-key-ref`",
        ),
        (
            "{:type :signature :secret-ref :k :signature-header \"x\" :signed-message :timestamp-payload}",
            "`:signed-message :timestamp-payload` needs the `:timestamp-header`",
        ),
        (
            "{:type :ip-allowlist :allow [\"10.0.0.0/33\"]}",
            "`:allow` holds \"10.0.0.0/33\", which is not an address",
        ),
        (
            "{:type :ip-allowlist :allow []}",
            "`:auth` of type `:ip-allowlist` needs `:allow` with addresses",
        ),
    ] {
        let value = crate::codec::decode(auth).expect("EDN");
        assert_eq!(Proof::read(&value), Err(expected.to_owned()), "{auth}");
    }
}

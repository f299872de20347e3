//! The rows of `tests/coverage/http.tsv` on authentication.

use crate::net::{Net, contains};
use crate::server::{json, reply};

fn with_secret() -> Net {
    Net::with(
        vec![reply("204 No Content", &[], "")],
        &[
            (
                "flowstone.edn",
                "{:connections {:crm {:base-url \"URL\" :auth {:type :bearer :secret-ref :crm-token}}}}",
            ),
            (".env", "MY_TOKEN=s3cr3t-token\nCRM_TOKEN=crm-s3cr3t\n"),
        ],
    )
}

#[test]
fn auth() {
    let net = with_secret();
    let header = |config: &str| net.sent_header("authorization", config);
    assert_eq!(header("{:connection :crm}"), "Bearer crm-s3cr3t");
    // The auth of the step replaces that of the connection.
    assert_eq!(
        header("{:connection :crm :auth {:type :bearer :secret-ref :my-token}}"),
        "Bearer s3cr3t-token"
    );
    assert_eq!(header("{:connection :crm :auth {:type :none}}"), "none");
    assert_eq!(
        header("{:url \"URL\" :auth {:type :basic :username \"me\" :secret-ref :my-token}}"),
        "Basic bWU6czNjcjN0LXRva2Vu"
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:type :bearr}}"),
        "E0753 `:auth` has no type `:bearr`",
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:secret-ref :x}}"),
        "needs `:type`",
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:type :bearer :scopes [\"a\"] :secret-ref :x}}"),
        "`:auth` has no key `:scopes`",
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:type :bearer :secret-ref :gone}}"),
        "E0752 the secret `gone` is not set",
    );
    assert!(!net.project.everything_kept().contains("s3cr3t"));
}

#[test]
fn auth_bearer() {
    let net = with_secret();
    let config = "{:url \"URL\" :auth {:type :bearer :secret-ref :my-token}}";
    assert_eq!(
        net.sent_header("authorization", config),
        "Bearer s3cr3t-token"
    );
    contains(
        &net.sent("{:url \"URL\" :auth {:type :bearer}}"),
        "`:auth` needs `:secret-ref`",
    );
}

#[test]
fn auth_api_key() {
    let net = with_secret();
    let sent = |more: &str| {
        net.sent(&format!(
            "{{:url \"URL\" :auth {{:type :api-key :secret-ref :my-token {more}}}}}"
        ))
    };
    contains(&sent(""), "\nx-api-key: s3cr3t-token\n");
    contains(
        &sent(":header \"Authorization\" :prefix \"Token \""),
        "\nauthorization: Token s3cr3t-token\n",
    );
    contains(&sent(":query \"key\""), "GET /?key=s3cr3t-token ");
    contains(
        &sent(":query \"key\" :header \"x\""),
        "takes `:header` or `:query`, not both",
    );
}

#[test]
fn auth_google_service_account() {
    let net = Net::with(
        vec![
            json(
                "{\"access_token\":\"t0k3n-of-google\",\"expires_in\":3600,\"token_type\":\"Bearer\"}",
            ),
            reply("204 No Content", &[], ""),
        ],
        &[
            (
                "flowstone.edn",
                "{:secrets {:sa {:file \"key.json\"} :bad {:file \"bad.json\"} :odd {:file \"odd.json\"}} :allow {:secrets {:sa [\"127.0.0.1\"] :bad [\"127.0.0.1\"] :odd [\"127.0.0.1\"]}}}",
            ),
            ("bad.json", "{\"a\": 1}"),
            ("odd.json", "not json"),
        ],
    );
    let key = serde_json::json!({
        "type": "service_account", "client_email": "me@project.example", "private_key_id": "k1",
        "private_key": RSA_KEY, "token_uri": format!("{}/token", net.server.url),
    });
    std::fs::write(net.project.folder().join("key.json"), key.to_string()).unwrap();
    let ask = "{:url \"URL/data\" :auth {:type :google-service-account :secret-ref :sa :scopes [\"https://example.com/read\"]}}";
    net.take("r", ask);
    net.take("r", ask);
    let requests = net.server.requests();
    assert_eq!(requests.len(), 3, "the token is asked for once");
    contains(&requests[0], "POST /token HTTP/1.1");
    contains(
        &requests[0],
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=",
    );
    for request in &requests[1..] {
        contains(request, "GET /data ");
        contains(request, "authorization: Bearer t0k3n-of-google");
    }
    let (_, assertion) = requests[0].rsplit_once('=').unwrap();
    let parts: Vec<&str> = assertion.split('.').collect();
    let read = |part: &str| String::from_utf8(base64_url(part)).unwrap();
    assert_eq!(read(parts[0]), r#"{"alg":"RS256","typ":"JWT","kid":"k1"}"#);
    let claims: serde_json::Value = serde_json::from_str(&read(parts[1])).unwrap();
    assert_eq!(claims["iss"], "me@project.example");
    assert_eq!(claims["scope"], "https://example.com/read");
    assert_eq!(
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
        3600
    );
    assert_eq!(base64_url(parts[2]).len(), 256);
    let kept = net.project.everything_kept();
    assert!(
        !kept.contains("t0k3n") && !kept.contains("PRIVATE"),
        "{kept}"
    );
    contains(
        &net.take("r", &ask.replace(":sa", ":bad")),
        "E0747 the secret is not the JSON key of a service account",
    );
    contains(&net.take("r", &ask.replace(":sa", ":odd")), "E0747");
    contains(
        &net.take(
            "r",
            &ask.replace(":scopes [\"https://example.com/read\"]", ""),
        ),
        "E0753 `:auth` needs `:scopes`",
    );
}

fn base64_url(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .unwrap()
}

#[test]
fn auth_inline_tokens() {
    let net = with_secret();
    for key in [
        ":token",
        ":secret",
        ":password",
        ":api-key",
        ":value",
        ":key",
    ] {
        let found = net.sent(&format!(
            "{{:url \"URL\" :auth {{:type :bearer {key} \"abc\"}}}}"
        ));
        contains(
            &found,
            &format!("E0753 `:auth` holds a secret itself, under `{key}`"),
        );
        contains(&found, "name it instead, `:secret-ref :my-token`");
    }
}

/// A key that was made for this test and is used nowhere else.
const RSA_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDIne9A0vcRZTIN\n\
Iy9VOgUYPzuDwbRrMfyN7qEE2Y95eAghwUr5jgXOIYfndpsH4rl48Lq7KWjedNS3\n\
roV856Ts/UOxbM0NYSnN/xVPfWbznpEOluSiGJcuWCpo3Vs8KHoXDWUoYLPjI9kc\n\
Xv+ONYV4s7FNN1cywjJfTX2GCkIrEPm4SnjvyV4jJPQ/TyQWRhvS7LS2eBFZ0rL5\n\
/kwECgV1tpiVtmB6HhSzrnmSUsWAIGS9Ur20XVe5pR+sNkzmvtgzpvUpcsnAlAoH\n\
NkSy7JpIpmo5O30tRgqvt1kRV/UuNUgBlwHOZnDCE5cdjs2HKA3LQBoxjWGHBrZN\n\
Jof7Ba7VAgMBAAECggEAAaosgpVdlH40+0lCoB/s9pBhGOJMx3jw4hKhW8NxvoMh\n\
pM9lpQrUfys7D/ole4bE8ufN0jYb7ICmr+bZrQ7VCQcUU+QVvYSEDsq3mA3FLW9a\n\
6naTwMlDHpDVD+1fpPD8YQrs6c1c9h0QNP060f4dX0I1I0a6yVfgMsyXUTtDj6I+\n\
0PhaK3JdiRHv8kA12wVRnPuofzyx4NzCKzMQylsVopQFd8ZhTgHwg8gvzFY5xwUT\n\
S6zOd0ZYCduZh7Mw3b6LQ/d2ThSEEMFbmLkDCsAWC2xUhzZpzUjkdzkK7wMOqVRr\n\
jmOUwoFDom51e8OoCAL0JP6FMMn9K6HA5a7UtwrxDwKBgQD5aipbaoNbD6NaCg60\n\
ERuD3jNQdMM4B1tJKJyVBgM9kO1XZC4PDOCr7nQ+dx+AW+aTVWpO31m6ofNnlRrB\n\
0atqtBMpY3sh5fyKE0hmU/60FCymaSynLBej9osWBmNElhdeMHOhYbxTdLAQpl36\n\
u6HmolEFv7x0W3RVYvO8Yk/6PwKBgQDN6e/gu9ynoKkOyFw9OqtasnVhUxyXUHDO\n\
93qrGqSjLa0RRlD4MoTLDJsB0p4mqeea6x2jR84x5+2iI3pdX5KFWAHRy2L+Gwox\n\
YY8MYRDUeD3ZDdR1VTGoLekb3il8tbwN/wxlzCIp/5hxugwfwloQ5zBst97pHLN5\n\
G+kETQFJ6wKBgQDzmX5/RLvAz7hC87nCo0bVd8t0lGYrLfw5qwGsB3BYzFkTVtQp\n\
fPFe24oLjHtm+dttISqwmDLiNtUt4RJ+JROgJvrkHLahuCf8j7LRxs3pAh9N9UFY\n\
kZcRXHYh7+E6lsGCDB6Ti4rNlBV2XZdCkcoiIXyy+b7NgplP4FKgNwFYLwKBgQDG\n\
wAuKNqoHnlova5MkgnGMzH3h38/T+Y+5JURgzQmme1r2NpHGzzQ/rL4dJ0cBeLOV\n\
Y2UrCg7rOrqy6l2crLgHPugasJ6vODhBa7IgN7x/6EOCMwgj7IROmWnMPUZ8GgoW\n\
1FwKEdvT/+ILu5EiQnyenheuiFd/V/WfayIhxZX92wKBgHw4ontrh+t8WipsMXHR\n\
d9S6vPh3cawLIWpvTcARfe+fYhA+3azvIpQ58JQPi4SqKYax3Hsx61gb6gt5dhzt\n\
RIReCiQs5OyDCripiSVsgKcqAiTiGloPCtl3eFC7BbeiBMFpmVKm+yXvBPFMC14g\n\
g4sr8FEU2PbU2MHrRayF4Uyk\n\
-----END PRIVATE KEY-----\n\
";

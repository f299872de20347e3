//! Signatures of AWS: its published vectors, and a call to Bedrock signed by its own library.

use flowstone_engine::ports::Secret;
use flowstone_steps::llm::sigv4::Signer;

/// The time of the vectors: 30 August 2015, 12:36:00 UTC.
const THEN: i64 = 1_440_938_160_000;

fn signer(token: Option<&str>) -> Signer {
    Signer {
        access_key_id: Secret::new("AKIDEXAMPLE"),
        secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        session_token: token.map(Secret::new),
        region: "us-east-1".into(),
        service: "service".into(),
    }
}

#[track_caller]
fn signs(
    signer: &Signer,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> String {
    let url = format!("https://example.amazonaws.com{path}");
    let own = headers
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    let own: Vec<(String, String)> = own.collect();
    let added = signer.sign(method, &url.parse().unwrap(), &own, body.as_bytes(), THEN);
    assert_eq!(added[0], ("x-amz-date".into(), "20150830T123600Z".into()));
    added.last().unwrap().1.clone()
}

/// Name, method, path, headers, body, the signed headers and the signature.
type Vector = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
    &'static str,
);

const VECTORS: &[Vector] = &[
    (
        "get-vanilla",
        "GET",
        "/",
        &[],
        "",
        "host;x-amz-date",
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    ),
    (
        "get-vanilla-query-order-key-case",
        "GET",
        "/?Param2=value2&Param1=value1",
        &[],
        "",
        "host;x-amz-date",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    (
        "get-vanilla-query-order-value",
        "GET",
        "/?Param1=value2&Param1=value1",
        &[],
        "",
        "host;x-amz-date",
        "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694",
    ),
    (
        "get-header-key-duplicate",
        "GET",
        "/",
        &[
            ("My-Header1", "value2"),
            ("My-Header1", "value2"),
            ("My-Header1", "value1"),
        ],
        "",
        "host;my-header1;x-amz-date",
        "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
    ),
    (
        "get-header-value-trim",
        "GET",
        "/",
        &[("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")],
        "",
        "host;my-header1;my-header2;x-amz-date",
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    ),
    (
        "post-vanilla",
        "POST",
        "/",
        &[],
        "",
        "host;x-amz-date",
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ),
    (
        "post-x-www-form-urlencoded",
        "POST",
        "/",
        &[("Content-Type", "application/x-www-form-urlencoded")],
        "Param1=value1",
        "content-type;host;x-amz-date",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
];

#[test]
fn published_vectors() {
    for (name, method, path, headers, body, names, signature) in VECTORS {
        assert_eq!(
            signs(&signer(None), method, path, headers, body),
            format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders={names}, Signature={signature}"
            ),
            "{name}"
        );
    }
}

#[test]
fn a_session_token_is_signed_too() {
    let token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
    let shown = signs(&signer(Some(token)), "POST", "/", &[], "");
    assert!(shown.ends_with("SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"), "{shown}");
}

#[test]
fn a_path_is_percent_encoded_twice() {
    let signer = Signer {
        region: "eu-west-1".into(),
        service: "bedrock".into(),
        ..signer(None)
    };
    let url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.anthropic.claude-v1%3A0/converse-stream";
    let kind = [("content-type".to_string(), "application/json".to_string())];
    let added = signer.sign("POST", &url.parse().unwrap(), &kind, b"{\"a\":1}", THEN);
    // The signature that botocore 1 computes.
    assert_eq!(
        added[1].1,
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=576e559b991c888550514046bb40af4cf45b14818a8b3bf4ff2d2589f542925a"
    );
}

#[test]
fn odd_requests_can_be_signed() {
    for url in [
        "http://[::1]:80/?a",
        "http://h/%zz?%zz=%",
        "http://h/?&&=&a=b=c",
        "http://h/\u{e9}?\u{e9}",
    ] {
        for now in [i64::MIN, -1, 0, i64::MAX] {
            let added = signer(None).sign("", &url.parse().unwrap(), &[], b"", now);
            assert_eq!(added.len(), 2, "{url}");
        }
    }
}

//! How a proof of identity is written, as data: what `:auth` of a connection may be, by which a request shows who sends
//! it, and what `:auth` of a webhook may be, by which a caller does.

use crate::step::{Field, FieldType};

/// `:auth` of a connection, and of a step that has none.
pub const CONNECTION: FieldType = FieldType::Either(&[
    FieldType::Keys(&[
        HEADER,
        Field::optional(
            "prefix",
            FieldType::Text,
            "The text before the key, such as `\"Key \"`.",
        ),
        Field::optional(
            "query",
            FieldType::Text,
            "The parameter that has the key, instead of a header.",
        ),
        SECRET,
        Field::required(
            "type",
            FieldType::OneOf(&["api-key"]),
            "A key in a header or parameter.",
        ),
    ]),
    FieldType::Keys(&[
        Field::optional(
            "access-key-id-ref",
            FieldType::Name,
            "The secret with the id of the key.",
        ),
        Field::optional("region", FieldType::Name, "The region."),
        Field::optional(
            "secret-access-key-ref",
            FieldType::Name,
            "The secret with the key.",
        ),
        Field::optional(
            "service",
            FieldType::Name,
            "The service that signatures are for.",
        ),
        Field::optional(
            "session-token-ref",
            FieldType::Name,
            "The secret with the session's token.",
        ),
        Field::required(
            "type",
            FieldType::OneOf(&["aws-sigv4"]),
            "Signed requests to AWS.",
        ),
    ]),
    FieldType::Keys(BASIC),
    FieldType::Keys(BEARER),
    FieldType::Keys(&[
        Field::required(
            "scopes",
            FieldType::List(&FieldType::Text),
            "What the token is for.",
        ),
        SECRET,
        Field::required(
            "type",
            FieldType::OneOf(&["google-service-account"]),
            "A token that is got for a signed statement.",
        ),
    ]),
    FieldType::Keys(&[Field::required(
        "type",
        FieldType::OneOf(&["none"]),
        "Nothing is needed.",
    )]),
]);

/// `:auth` of a webhook.
pub const CALLER: FieldType = FieldType::Either(&[
    FieldType::Keys(&[
        HEADER,
        Field::optional(
            "location",
            FieldType::OneOf(&["header", "query"]),
            "Where the key is.",
        ),
        Field::optional("param", FieldType::Text, "The parameter that has the key."),
        Field::required("secret-ref", FieldType::Name, "The secret."),
        Field::required(
            "type",
            FieldType::OneOf(&["api-key"]),
            "A key in a header or parameter.",
        ),
    ]),
    FieldType::Keys(&[
        Field::required("secret-ref", FieldType::Name, "The secret."),
        Field::required(
            "type",
            FieldType::OneOf(&["basic"]),
            "A name and a password.",
        ),
        Field::optional("username", FieldType::Text, "The name."),
    ]),
    FieldType::Keys(&[
        Field::required("secret-ref", FieldType::Name, "The secret."),
        Field::required("type", FieldType::OneOf(&["bearer"]), "A token."),
    ]),
    FieldType::Keys(&[
        HEADER,
        Field::required("secret-ref", FieldType::Name, "The secret."),
        Field::required(
            "type",
            FieldType::OneOf(&["hmac-sha256"]),
            "A digest of the body.",
        ),
    ]),
    FieldType::Keys(&[
        Field::required(
            "allow",
            FieldType::List(&FieldType::Text),
            "The addresses that may call.",
        ),
        Field::required(
            "type",
            FieldType::OneOf(&["ip-allowlist"]),
            "The caller's address.",
        ),
    ]),
    FieldType::Keys(&[
        Field::optional(
            "algo",
            FieldType::OneOf(&["ecdsa-p256", "hmac-sha256"]),
            "How it is signed.",
        ),
        Field::optional(
            "public-key-ref",
            FieldType::Name,
            "The secret with the public key.",
        ),
        Field::optional("secret-ref", FieldType::Name, "The secret."),
        Field::optional(
            "signature-format",
            FieldType::OneOf(&["base64", "hex"]),
            "How it is written.",
        ),
        Field::optional(
            "signature-header",
            FieldType::Text,
            "The header with the signature.",
        ),
        Field::optional(
            "signature-prefix",
            FieldType::Text,
            "The text before the signature.",
        ),
        Field::optional(
            "signed-message",
            FieldType::OneOf(&["payload", "timestamp-payload"]),
            "What is signed.",
        ),
        Field::optional(
            "timestamp-header",
            FieldType::Text,
            "The header with the time.",
        ),
        Field::optional(
            "timestamp-max-skew-ms",
            FieldType::Int,
            "How old a call may be.",
        ),
        Field::required(
            "type",
            FieldType::OneOf(&["signature"]),
            "A signature of the body.",
        ),
    ]),
]);

const HEADER: Field = Field::optional("header", FieldType::Text, "The header that has it.");
const SECRET: Field = Field::optional("secret-ref", FieldType::Name, "The secret, by its name.");
const BASIC: &[Field] = &[
    SECRET,
    Field::required(
        "type",
        FieldType::OneOf(&["basic"]),
        "A name and a password.",
    ),
    Field::optional("username", FieldType::Text, "The name."),
];
const BEARER: &[Field] = &[
    SECRET,
    Field::required("type", FieldType::OneOf(&["bearer"]), "A token."),
];

/// Keys under which people write secrets down.
pub const SECRETS_THEMSELVES: &[&str] = &[
    "api-key", "apikey", "key", "password", "secret", "token", "value",
];

/// Returns the types of such a map, each with the keys that it takes.
pub fn types(of: FieldType) -> Vec<(&'static str, Vec<&'static str>)> {
    let FieldType::Either(types) = of else {
        return Vec::new();
    };
    let maps = types.iter().filter_map(|one| match one {
        FieldType::Keys(fields) => Some(*fields),
        _ => None,
    });
    maps.filter_map(|fields| {
        let type_ = fields.iter().find(|field| field.name == "type")?;
        match type_.type_ {
            FieldType::OneOf([name]) => {
                Some((*name, fields.iter().map(|field| field.name).collect()))
            }
            _ => None,
        }
    })
    .collect()
}

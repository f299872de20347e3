//! How a proof of identity is written, as data: what `:auth` of a connection may be, by which a request shows who sends
//! it, and what `:auth` of a webhook may be, by which a caller does.

use crate::spec::{Field, FieldType};

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
    API_KEY_OF_CALLER,
    BASIC_OF_CALLER,
    BEARER_OF_CALLER,
    GITHUB,
    HMAC,
    ADDRESSES,
    SIGNATURE,
    SLACK,
    STANDARD,
    STRIPE,
]);

/// `:auth` of an `:http` interface, which may be open to everybody.
pub const HTTP_CALLER: FieldType = FieldType::Either(&[
    API_KEY_OF_CALLER,
    BASIC_OF_CALLER,
    BEARER_OF_CALLER,
    GITHUB,
    HMAC,
    ADDRESSES,
    FieldType::Keys(&[Field::required(
        "type",
        FieldType::OneOf(&["none"]),
        "Everybody may call, if the project lists the interface under `:server :public`.",
    )]),
    SIGNATURE,
    SLACK,
    STANDARD,
    STRIPE,
]);

const API_KEY_OF_CALLER: FieldType = FieldType::Keys(&[
    HEADER,
    Field::optional(
        "location",
        FieldType::OneOf(&["header", "query"]),
        "Where the key is.",
    ),
    Field::optional("param", FieldType::Text, "The parameter that has the key."),
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["api-key"]),
        "A key in a header or parameter.",
    ),
]);

const BASIC_OF_CALLER: FieldType = FieldType::Keys(&[
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["basic"]),
        "A name and a password.",
    ),
    Field::optional("username", FieldType::Text, "The name."),
]);

const BEARER_OF_CALLER: FieldType = FieldType::Keys(&[
    SECRET_OF_CALLER,
    Field::required("type", FieldType::OneOf(&["bearer"]), "A token."),
]);

const GITHUB: FieldType = FieldType::Keys(&[
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["github"]),
        "The signature of GitHub.",
    ),
]);

const HMAC: FieldType = FieldType::Keys(&[
    HEADER,
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["hmac-sha256"]),
        "A digest of the body.",
    ),
]);

const ADDRESSES: FieldType = FieldType::Keys(&[
    Field::required(
        "allow",
        FieldType::List(&FieldType::Text),
        "The addresses that may call, or ranges such as `10.0.0.0/8`.",
    ),
    Field::required(
        "type",
        FieldType::OneOf(&["ip-allowlist"]),
        "The caller's address.",
    ),
]);

const SIGNATURE: FieldType = FieldType::Keys(&[
    Field::optional(
        "algo",
        FieldType::OneOf(&["ecdsa-p256", "hmac-sha256"]),
        "How it is signed.",
    ),
    Field::optional(
        "public-key-ref",
        NAMES,
        "The secret with the public key; several while keys change.",
    ),
    Field::optional("secret-ref", NAMES, "The secret; several while it changes."),
    Field::optional(
        "separator",
        FieldType::Text,
        "The text between time and body; by default none.",
    ),
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
]);

const SLACK: FieldType = FieldType::Keys(&[
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["slack"]),
        "The signature of Slack.",
    ),
]);

const STANDARD: FieldType = FieldType::Keys(&[
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["standard-webhooks"]),
        "The signature of Standard Webhooks.",
    ),
]);

const STRIPE: FieldType = FieldType::Keys(&[
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["stripe"]),
        "The signature of Stripe.",
    ),
]);

/// A name, or several of which any will do.
const NAMES: FieldType = FieldType::Either(&[FieldType::Name, FieldType::List(&FieldType::Name)]);
const SECRET_OF_CALLER: Field = Field::required(
    "secret-ref",
    NAMES,
    "The secret, by its name; several while it changes.",
);
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

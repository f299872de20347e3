//! The forms of `:auth`, as data: of a connection, where it authenticates the requests that a flow sends, and of a
//! webhook, where it authenticates the callers.

use crate::spec::{Field, FieldType};

/// `:auth` of a connection, and of a step without a connection.
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
            "The query parameter with the key, instead of a header.",
        ),
        SECRET,
        Field::required(
            "type",
            FieldType::OneOf(&["api-key"]),
            "A key in a header or query parameter.",
        ),
    ]),
    FieldType::Keys(&[
        Field::optional(
            "access-key-id-ref",
            FieldType::Name,
            "The secret with the access key id.",
        ),
        Field::optional("region", FieldType::Name, "The region."),
        Field::optional(
            "secret-access-key-ref",
            FieldType::Name,
            "The secret with the secret access key.",
        ),
        Field::optional(
            "service",
            FieldType::Name,
            "The AWS service that requests are signed for.",
        ),
        Field::optional(
            "session-token-ref",
            FieldType::Name,
            "The secret with the session token.",
        ),
        Field::required(
            "type",
            FieldType::OneOf(&["aws-sigv4"]),
            "Requests signed for AWS.",
        ),
    ]),
    FieldType::Keys(BASIC),
    FieldType::Keys(BEARER),
    FieldType::Keys(&[
        Field::required(
            "scopes",
            FieldType::List(&FieldType::Text),
            "The scopes that the token is requested for.",
        ),
        SECRET,
        Field::required(
            "type",
            FieldType::OneOf(&["google-service-account"]),
            "A token that is exchanged for a signed assertion.",
        ),
    ]),
    FieldType::Keys(&[Field::required(
        "type",
        FieldType::OneOf(&["none"]),
        "No authentication.",
    )]),
    FieldType::Keys(OAUTH),
    FieldType::Keys(PRIVATE_KEY),
]);

const PRIVATE_KEY: &[Field] = &[
    Field::optional(
        "passphrase-secret-ref",
        FieldType::Name,
        "The secret with the passphrase of the key.",
    ),
    SECRET,
    Field::required(
        "type",
        FieldType::OneOf(&["private-key"]),
        "A key in the format of OpenSSH, for `:ssh`.",
    ),
];

const OAUTH: &[Field] = &[
    Field::optional(
        "authorization-endpoint",
        FieldType::Text,
        "The address of the login page, where the server does not describe itself.",
    ),
    Field::optional(
        "client-id",
        FieldType::Text,
        "The client that is registered at the authorization server. Default: one is registered at each login.",
    ),
    Field::optional(
        "client-secret-ref",
        FieldType::Name,
        "The secret of that client, by its name.",
    ),
    Field::optional(
        "device-authorization-endpoint",
        FieldType::Text,
        "The address for a login with a code, where the server does not describe itself.",
    ),
    Field::optional(
        "issuer",
        FieldType::Text,
        "The authorization server. Default: the one that the connection's server names.",
    ),
    Field::optional(
        "scopes",
        FieldType::List(&FieldType::Text),
        "The scopes that are requested. Default: those that the connection's server asks for.",
    ),
    Field::optional(
        "token-endpoint",
        FieldType::Text,
        "The address that gives tokens, where the server does not describe itself.",
    ),
    Field::required(
        "type",
        FieldType::OneOf(&["oauth"]),
        "A token of `flowstone connections login`.",
    ),
];

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

/// `:auth` of an `:http` interface, which may be open to anyone.
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
        "Anyone may call, if the project lists the interface under `:server :public`.",
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
        "Where the key is sent.",
    ),
    Field::optional(
        "param",
        FieldType::Text,
        "The query parameter with the key.",
    ),
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["api-key"]),
        "A key in a header or query parameter.",
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
        "A signature as GitHub sends it.",
    ),
]);

const HMAC: FieldType = FieldType::Keys(&[
    HEADER,
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["hmac-sha256"]),
        "An HMAC of the body.",
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
        "The algorithm of the signature.",
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
        "The text between time and body; empty by default.",
    ),
    Field::optional(
        "signature-format",
        FieldType::OneOf(&["base64", "hex"]),
        "The encoding of the signature.",
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
        "Whether the body is signed alone, or with the time before it.",
    ),
    Field::optional(
        "timestamp-header",
        FieldType::Text,
        "The header with the time.",
    ),
    Field::optional(
        "timestamp-max-skew-ms",
        FieldType::Int,
        "Maximum age of a call, in milliseconds.",
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
        "A signature as Slack sends it.",
    ),
]);

const STANDARD: FieldType = FieldType::Keys(&[
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["standard-webhooks"]),
        "A signature by the Standard Webhooks specification.",
    ),
]);

const STRIPE: FieldType = FieldType::Keys(&[
    SECRET_OF_CALLER,
    Field::required(
        "type",
        FieldType::OneOf(&["stripe"]),
        "A signature as Stripe sends it.",
    ),
]);

/// A name, or several names of which any one is accepted.
const NAMES: FieldType = FieldType::Either(&[FieldType::Name, FieldType::List(&FieldType::Name)]);
const SECRET_OF_CALLER: Field = Field::required(
    "secret-ref",
    NAMES,
    "The secret, by its name; several while it changes.",
);
const HEADER: Field = Field::optional(
    "header",
    FieldType::Text,
    "The header with the key or signature.",
);
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

/// Keys that usually hold a secret itself instead of its name.
pub const LITERAL_SECRET_KEYS: &[&str] = &[
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

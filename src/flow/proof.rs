//! Authentication of callers of an interface: `:auth` of interfaces, triggers and webhooks of waits, read from data.
//!
//! Nothing is verified here, and no secret is read: a proof only contains names of secrets.

use std::net::IpAddr;

use flowstone_lang::value::Value;

use flowstone_model::names::name_of;

/// Maximum difference between the clocks of sender and receiver.
const SKEW_MS: i64 = 300_000;

/// The proof that a caller must provide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    ApiKey {
        place: KeyPlace,
        secrets: Vec<String>,
    },
    Bearer {
        secrets: Vec<String>,
    },
    Basic {
        username: Option<String>,
        secrets: Vec<String>,
    },
    Signed(Signed),
    /// `Stripe-Signature: t=,v1=[,v1=]`.
    Stripe {
        secrets: Vec<String>,
    },
    /// `X-Slack-Signature: v0=` over `v0:t:body`.
    Slack {
        secrets: Vec<String>,
    },
    /// `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,` over `id.t.body`.
    StandardWebhooks {
        secrets: Vec<String>,
    },
    Addresses {
        allow: Vec<Network>,
    },
    /// Anyone may call.
    None,
}

/// The place of an API key in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    Header(String),
    Query(String),
}

/// A signature in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    pub algorithm: Algorithm,
    pub header: String,
    /// A prefix that must be present, and is removed.
    pub prefix: String,
    pub encoding: Encoding,
    /// The time that is signed too. `None`: only the body is signed.
    pub time: Option<SignedTime>,
    /// Names of secrets, or of public keys.
    pub secrets: Vec<String>,
}

/// The time that is signed before the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTime {
    pub header: String,
    pub separator: String,
    pub skew_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    HmacSha256,
    EcdsaP256,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Base64,
    Hex,
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Reads an address, or a range such as `10.0.0.0/8`.
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then_some(Network { address, bits })
    }

    /// Tells whether an address is in the range. An IPv4 address may be written as IPv6.
    pub fn contains(&self, address: IpAddr) -> bool {
        let number = |address: IpAddr| match address {
            IpAddr::V4(four) => (u128::from(u32::from(four)), 32_u8),
            IpAddr::V6(six) => (u128::from(six), 128),
        };
        let (own, width) = number(self.address.to_canonical());
        let (other, other_width) = number(address.to_canonical());
        let shift = u32::from(width.saturating_sub(self.bits));
        width == other_width
            && own.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
    }
}

impl Proof {
    /// Reads `:auth`.
    ///
    /// # Errors
    /// A message that states what is wrong.
    pub fn read(auth: &Value) -> Result<Proof, String> {
        let Some(kind) = auth.get("type").and_then(name_of) else {
            return Err("`:auth` needs a `:type`".to_owned());
        };
        match &*kind {
            "api-key" => api_key(auth),
            "bearer" => Ok(Proof::Bearer {
                secrets: secrets(auth, &kind)?,
            }),
            "basic" => Ok(Proof::Basic {
                username: text(auth, "username"),
                secrets: secrets(auth, &kind)?,
            }),
            "hmac-sha256" => Ok(Proof::Signed(Signed {
                header: header(auth, "header", "X-Signature"),
                ..Signed::of_body(Encoding::Base64, secrets(auth, &kind)?)
            })),
            "github" => Ok(Proof::Signed(Signed {
                header: "x-hub-signature-256".to_owned(),
                prefix: "sha256=".to_owned(),
                ..Signed::of_body(Encoding::Hex, secrets(auth, &kind)?)
            })),
            "stripe" => Ok(Proof::Stripe {
                secrets: secrets(auth, &kind)?,
            }),
            "slack" => Ok(Proof::Slack {
                secrets: secrets(auth, &kind)?,
            }),
            "standard-webhooks" => Ok(Proof::StandardWebhooks {
                secrets: secrets(auth, &kind)?,
            }),
            "signature" => signature(auth),
            "ip-allowlist" => addresses(auth),
            "none" => Ok(Proof::None),
            other => Err(format!("`:auth` has no type `:{other}`")),
        }
    }

    /// Returns the names of the secrets that verifying needs.
    pub fn secrets(&self) -> &[String] {
        match self {
            Proof::ApiKey { secrets, .. }
            | Proof::Bearer { secrets }
            | Proof::Basic { secrets, .. }
            | Proof::Stripe { secrets }
            | Proof::Slack { secrets }
            | Proof::StandardWebhooks { secrets } => secrets,
            Proof::Signed(signed) => &signed.secrets,
            Proof::Addresses { .. } | Proof::None => &[],
        }
    }

    /// Returns the headers, in lower case, that contain the proof. They are hidden from the run.
    pub fn headers(&self) -> Vec<&str> {
        match self {
            Proof::ApiKey { place, .. } => match place {
                KeyPlace::Header(name) => vec![name],
                KeyPlace::Query(_) => Vec::new(),
            },
            Proof::Bearer { .. } | Proof::Basic { .. } => vec!["authorization"],
            Proof::Signed(signed) => vec![&signed.header],
            Proof::Stripe { .. } => vec!["stripe-signature"],
            Proof::Slack { .. } => vec!["x-slack-signature"],
            Proof::StandardWebhooks { .. } => vec!["webhook-signature"],
            Proof::Addresses { .. } | Proof::None => Vec::new(),
        }
    }

    /// Returns the query parameter that contains the proof. It is hidden from the run.
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Proof::ApiKey {
                place: KeyPlace::Query(name),
                ..
            } => Some(name),
            _ => None,
        }
    }
}

impl Signed {
    fn of_body(encoding: Encoding, secrets: Vec<String>) -> Signed {
        Signed {
            algorithm: Algorithm::HmacSha256,
            header: String::new(),
            prefix: String::new(),
            encoding,
            time: None,
            secrets,
        }
    }
}

fn api_key(auth: &Value) -> Result<Proof, String> {
    let is_query = auth
        .get("location")
        .and_then(name_of)
        .is_some_and(|it| &*it == "query");
    let place = match (is_query, text(auth, "param")) {
        (false, _) => KeyPlace::Header(header(auth, "header", "X-API-Key")),
        (true, Some(name)) => KeyPlace::Query(name),
        (true, None) => return Err("a key in the query needs its `:param`".to_owned()),
    };
    Ok(Proof::ApiKey {
        place,
        secrets: secrets(auth, "api-key")?,
    })
}

fn signature(auth: &Value) -> Result<Proof, String> {
    let is = |key: &str, name: &str| {
        auth.get(key)
            .and_then(name_of)
            .is_some_and(|it| &*it == name)
    };
    let algorithm = match is("algo", "ecdsa-p256") {
        true => Algorithm::EcdsaP256,
        false => Algorithm::HmacSha256,
    };
    let key = match algorithm {
        Algorithm::EcdsaP256 => "public-key-ref",
        Algorithm::HmacSha256 => "secret-ref",
    };
    let secrets = names(auth, key);
    if secrets.is_empty() {
        return Err(format!("this `:auth` of type `:signature` needs `:{key}`"));
    }
    let Some(own) = text(auth, "signature-header") else {
        return Err("`:auth` of type `:signature` needs its `:signature-header`".to_owned());
    };
    let time = match (
        is("signed-message", "timestamp-payload"),
        text(auth, "timestamp-header"),
    ) {
        (false, _) => None,
        (true, None) => {
            return Err(
                "`:signed-message :timestamp-payload` needs the `:timestamp-header`".to_owned(),
            );
        }
        (true, Some(header)) => Some(SignedTime {
            header: header.to_ascii_lowercase(),
            separator: text(auth, "separator").unwrap_or_default(),
            skew_ms: auth
                .get("timestamp-max-skew-ms")
                .and_then(Value::as_int)
                .unwrap_or(SKEW_MS),
        }),
    };
    Ok(Proof::Signed(Signed {
        algorithm,
        header: own.to_ascii_lowercase(),
        prefix: text(auth, "signature-prefix").unwrap_or_default(),
        encoding: match is("signature-format", "hex") {
            true => Encoding::Hex,
            false => Encoding::Base64,
        },
        time,
        secrets,
    }))
}

fn addresses(auth: &Value) -> Result<Proof, String> {
    let given = auth.get("allow").and_then(crate::json::items);
    let given = given.unwrap_or_default();
    if given.is_empty() {
        return Err("`:auth` of type `:ip-allowlist` needs `:allow` with addresses".to_owned());
    }
    let mut allow = Vec::new();
    for item in &given {
        let text = item.as_str().unwrap_or_default();
        allow.push(
            Network::parse(text)
                .ok_or_else(|| format!("`:allow` holds {text:?}, which is not an address"))?,
        );
    }
    Ok(Proof::Addresses { allow })
}

fn secrets(auth: &Value, kind: &str) -> Result<Vec<String>, String> {
    let names = names(auth, "secret-ref");
    match names.is_empty() {
        false => Ok(names),
        true => Err(format!("`:auth` of type `:{kind}` needs `:secret-ref`")),
    }
}

/// Reads a name, or a vector of them.
fn names(auth: &Value, key: &str) -> Vec<String> {
    match auth.get(key) {
        Some(Value::Vector(items)) => items
            .iter()
            .filter_map(name_of)
            .map(|name| name.to_string())
            .collect(),
        Some(one) => name_of(one)
            .map(|name| name.to_string())
            .into_iter()
            .collect(),
        None => Vec::new(),
    }
}

fn text(auth: &Value, key: &str) -> Option<String> {
    let text = auth.get(key)?.as_str()?;
    Some(text.to_string()).filter(|text| !text.is_empty())
}

fn header(auth: &Value, key: &str, usual: &str) -> String {
    text(auth, key)
        .unwrap_or_else(|| usual.to_owned())
        .to_ascii_lowercase()
}

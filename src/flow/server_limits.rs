//! How much a server takes at once: `:server {:limits ...}` of the settings.

use flowstone_lang::value::Value;
use flowstone_model::size::parse_size;
use flowstone_model::token::TokenKind;

use crate::flow::name_of;

/// Limits of a server. Those that the settings leave out have their defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// Bytes of all bodies that arrive, uploads apart. 256 MiB.
    pub bodies: usize,
    /// Open connections. 10,000.
    pub connections: usize,
    /// Open connections from one address, this machine and proxies apart. 256.
    pub connections_per_address: usize,
    /// Failed proofs of one kind from one address in a minute. 30.
    pub failed_proofs: usize,
    /// Requests in a second: of `anon` tokens from one address. 10.
    pub anon_requests: Option<usize>,
    /// Requests in a second: of a token of kind `owner`. No limit.
    pub owner_requests: Option<usize>,
    /// Requests in a second: of a token of kind `service`. No limit.
    pub service_requests: Option<usize>,
    /// Requests in a second: of a token of kind `user`. 50.
    pub user_requests: Option<usize>,
    /// Open streams of events. 10,000.
    pub streams: usize,
    /// Open streams of events of one token. 2,000.
    pub streams_per_token: usize,
    /// Bytes of the body of a webhook. 50 MB.
    pub webhook_body: usize,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            bodies: 256 << 20,
            connections: 10_000,
            connections_per_address: 256,
            failed_proofs: 30,
            anon_requests: Some(10),
            owner_requests: None,
            service_requests: None,
            user_requests: Some(50),
            streams: 10_000,
            streams_per_token: 2_000,
            webhook_body: 50_000_000,
        }
    }
}

impl ServerLimits {
    /// Reads a map such as `{:connections 500 :webhook-body "5MB" :requests {:service 100}}`.
    ///
    /// # Errors
    /// What is wrong with the map, in words.
    pub fn read(value: &Value) -> Result<ServerLimits, String> {
        let mut limits = ServerLimits::default();
        for (name, value) in entries(value)? {
            match &*name {
                "bodies" => limits.bodies = size(&name, value)?,
                "connections" => limits.connections = count(&name, value)?,
                "connections-per-address" => limits.connections_per_address = count(&name, value)?,
                "failed-proofs" => limits.failed_proofs = count(&name, value)?,
                "requests" => limits.read_requests(value)?,
                "streams" => limits.streams = count(&name, value)?,
                "streams-per-token" => limits.streams_per_token = count(&name, value)?,
                "webhook-body" => limits.webhook_body = size(&name, value)?,
                other => return Err(format!("there is no limit `:{other}`")),
            }
        }
        Ok(limits)
    }

    fn read_requests(&mut self, value: &Value) -> Result<(), String> {
        for (name, value) in entries(value)? {
            let kind = TokenKind::named(&name);
            let kind = kind.ok_or_else(|| format!("there is no kind of tokens `:{name}`"))?;
            let rate = Some(count(&name, value)?);
            match kind {
                TokenKind::Anon => self.anon_requests = rate,
                TokenKind::Owner => self.owner_requests = rate,
                TokenKind::Service => self.service_requests = rate,
                TokenKind::User => self.user_requests = rate,
            }
        }
        Ok(())
    }
}

fn entries(value: &Value) -> Result<Vec<(String, &Value)>, String> {
    let map = value.as_map().ok_or("limits are a map")?;
    let named = |(key, value)| Some((name_of(key)?.to_string(), value));
    let entries = map.iter().map(named).collect::<Option<Vec<_>>>();
    entries.ok_or_else(|| "limits have names".to_owned())
}

fn count(name: &str, value: &Value) -> Result<usize, String> {
    let count = value.as_int().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| (1..=1_000_000).contains(count));
    count.ok_or_else(|| format!("`:{name}` must be a whole number from 1 to 1000000"))
}

fn size(name: &str, value: &Value) -> Result<usize, String> {
    let bytes = match value.as_str() {
        Some(text) => parse_size(text),
        None => value.as_int().and_then(|bytes| u64::try_from(bytes).ok()),
    };
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| (1 << 16..=1 << 40).contains(bytes));
    bytes.ok_or_else(|| format!("`:{name}` must be a size from 64KiB on, such as \"50MB\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, Value)]) -> Value {
        let pairs = pairs.iter();
        Value::map(pairs.map(|(key, value)| (Value::keyword(key), value.clone())))
    }

    #[test]
    fn limits_that_are_left_out_have_their_defaults() {
        let requests = map(&[("service", Value::Int(100))]);
        let given = map(&[("webhook-body", Value::from("5MB")), ("requests", requests)]);
        let limits = ServerLimits::read(&given).expect("limits");
        let expected = ServerLimits {
            webhook_body: 5_000_000,
            service_requests: Some(100),
            ..ServerLimits::default()
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn limits_are_read_strictly() {
        for wrong in [
            Value::Int(1),
            map(&[("connection", Value::Int(1))]),
            map(&[("connections", Value::Int(0))]),
            map(&[("bodies", Value::from("1KB"))]),
            map(&[("bodies", Value::from("many"))]),
            map(&[("requests", map(&[("robot", Value::Int(1))]))]),
        ] {
            assert!(ServerLimits::read(&wrong).is_err(), "{wrong:?}");
        }
    }
}

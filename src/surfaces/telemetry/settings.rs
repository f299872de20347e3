//! The variables of OpenTelemetry that say what is sent, and where to.

use std::path::PathBuf;
use std::time::Duration;

use flowstone_engine::trace::TraceId;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

const ENDPOINT: &str = "ENDPOINT";
/// The path of traces below the address of a collector.
const TRACES: &str = "v1/traces";

/// What the environment asks for.
#[derive(Debug)]
pub(super) struct Settings {
    pub endpoint: Url,
    pub protocol: Protocol,
    /// They may be secret.
    pub headers: HeaderMap,
    /// For all attempts at sending a batch.
    pub timeout: Duration,
    pub gzip: bool,
    pub certificate: Option<PathBuf>,
    pub resource: Vec<(String, String)>,
    pub sampler: Sampler,
    pub has_content: bool,
    pub queue: usize,
    pub batch: usize,
    pub delay: Duration,
}

/// How spans are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Protobuf,
    Json,
}

/// Which traces are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sampler {
    /// The part of the traces that begin here.
    ratio: f64,
    /// Of a trace that began elsewhere, the program there has decided.
    follows_parent: bool,
}

impl Sampler {
    pub(super) fn samples(self, trace: TraceId, remote: Option<bool>) -> bool {
        match remote.filter(|_| self.follows_parent) {
            Some(is_sampled) => is_sampled,
            // The same in all programs that decide by ratio.
            None => (trace.low_bits() >> 1) < (self.ratio * (1_u64 << 63) as f64) as u64,
        }
    }
}

/// Reads variables, and notes what is wrong.
struct Reader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl Settings {
    /// Reads the variables. Returns nothing where nothing is to be sent, and what is wrong.
    pub(super) fn read(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> (Option<Settings>, Vec<String>) {
        let mut reader = Reader {
            variable,
            problems: Vec::new(),
        };
        let settings = reader.settings();
        (settings, reader.problems)
    }
}

impl Reader<'_> {
    fn settings(&mut self) -> Option<Settings> {
        if self.is_true("OTEL_SDK_DISABLED") {
            return None;
        }
        match self.get("OTEL_TRACES_EXPORTER").as_deref() {
            None | Some("otlp") => {}
            Some("none") => return None,
            Some(other) => {
                let expected = "expected `otlp` or `none`";
                self.wrong("OTEL_TRACES_EXPORTER", other, expected);
                return None;
            }
        }
        let endpoint = self.endpoint()?;
        let protocol = self.protocol()?;
        let millis = |reader: &mut Self, name: &str, usual: u64| {
            Duration::from_millis(reader.number(name, usual))
        };
        Some(Settings {
            endpoint,
            protocol,
            headers: self.headers(),
            timeout: {
                let both = self.number("OTEL_EXPORTER_OTLP_TIMEOUT", 10_000);
                millis(self, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", both)
            },
            gzip: self.gzip(),
            certificate: self.of_traces("CERTIFICATE").map(PathBuf::from),
            resource: self.resource(),
            sampler: self.sampler(),
            has_content: self.has_content(),
            queue: self.count("OTEL_BSP_MAX_QUEUE_SIZE", 2048),
            batch: self.count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
            delay: millis(self, "OTEL_BSP_SCHEDULE_DELAY", 5_000),
        })
    }

    /// Returns a variable that is set to something.
    fn get(&self, name: &str) -> Option<String> {
        let text = (self.variable)(name)?.trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the variable about traces, or else that about everything.
    fn of_traces(&self, name: &str) -> Option<String> {
        self.get(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
            .or_else(|| self.get(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    fn wrong(&mut self, name: &str, given: &str, expected: &str) {
        self.problems
            .push(format!("{name} is ignored: {expected}, got `{given}`"));
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    fn number(&mut self, name: &str, usual: u64) -> u64 {
        let Some(text) = self.get(name) else {
            return usual;
        };
        text.parse().unwrap_or_else(|_| {
            self.wrong(name, &text, "expected a number");
            usual
        })
    }

    fn count(&mut self, name: &str, usual: u64) -> usize {
        usize::try_from(self.number(name, usual).max(1)).unwrap_or(usize::MAX)
    }

    fn endpoint(&mut self) -> Option<Url> {
        let own = format!("OTEL_EXPORTER_OTLP_TRACES_{ENDPOINT}");
        let all = format!("OTEL_EXPORTER_OTLP_{ENDPOINT}");
        let (name, text) = match (self.get(&own), self.get(&all)) {
            (Some(own_text), _) => (own, own_text),
            (None, Some(text)) => (all, format!("{}/{TRACES}", text.trim_end_matches('/'))),
            (None, None) => return None,
        };
        let url = Url::parse(&text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if url.is_none() {
            // It may hold a password.
            self.problems.push(format!(
                "{name} is ignored: expected an address such as `http://127.0.0.1:4318`"
            ));
        }
        url
    }

    fn protocol(&mut self) -> Option<Protocol> {
        match self.of_traces("PROTOCOL").as_deref() {
            None | Some("http/protobuf") => Some(Protocol::Protobuf),
            Some("http/json") => Some(Protocol::Json),
            Some(other) => {
                let name = "OTEL_EXPORTER_OTLP_PROTOCOL";
                self.problems.push(format!(
                    "no spans are sent: {name} must be `http/protobuf` or `http/json`, got `{other}`"
                ));
                None
            }
        }
    }

    fn gzip(&mut self) -> bool {
        match self.of_traces("COMPRESSION").as_deref() {
            None | Some("none") => false,
            Some("gzip") => true,
            Some(other) => {
                let expected = "expected `gzip` or `none`";
                self.wrong("OTEL_EXPORTER_OTLP_COMPRESSION", other, expected);
                false
            }
        }
    }

    fn headers(&mut self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for name in [
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        ] {
            let Some(text) = self.get(name) else {
                continue;
            };
            for (key, value) in pairs(&text) {
                let header = HeaderName::try_from(key.as_str()).ok();
                match header.zip(HeaderValue::try_from(value).ok()) {
                    Some((header, mut value)) => {
                        value.set_sensitive(true);
                        headers.insert(header, value);
                    }
                    // Its value may be secret.
                    None => self.problems.push(format!(
                        "{name}: the header `{key}` is ignored: it is malformed"
                    )),
                }
            }
        }
        headers
    }

    fn resource(&mut self) -> Vec<(String, String)> {
        let own = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let mut all = vec![
            own("service.name", "flowstone"),
            own("service.version", env!("CARGO_PKG_VERSION")),
            own("telemetry.sdk.name", "flowstone"),
            own("telemetry.sdk.language", "rust"),
            own("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ];
        let given = self.get("OTEL_RESOURCE_ATTRIBUTES");
        let mut given = given.map(|text| pairs(&text)).unwrap_or_default();
        let name = self.get("OTEL_SERVICE_NAME");
        given.extend(name.map(|name| ("service.name".to_owned(), name)));
        for (key, value) in given {
            match all.iter_mut().find(|(known, _)| *known == key) {
                Some(known) => known.1 = value,
                None => all.push((key, value)),
            }
        }
        all
    }

    fn sampler(&mut self) -> Sampler {
        let name = self.get("OTEL_TRACES_SAMPLER");
        let name = name.as_deref().unwrap_or("parentbased_always_on");
        let (kind, follows_parent) = match name.strip_prefix("parentbased_") {
            Some(kind) => (kind, true),
            None => (name, false),
        };
        let ratio = match kind {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => self.ratio(),
            _ => {
                let expected = "expected `always_on`, `always_off` or `traceidratio`, or one of these after `parentbased_`";
                self.wrong("OTEL_TRACES_SAMPLER", name, expected);
                return Sampler {
                    ratio: 1.0,
                    follows_parent: true,
                };
            }
        };
        Sampler {
            ratio,
            follows_parent,
        }
    }

    fn ratio(&mut self) -> f64 {
        let name = "OTEL_TRACES_SAMPLER_ARG";
        let Some(text) = self.get(name) else {
            return 1.0;
        };
        let ratio = text.parse::<f64>().ok();
        ratio
            .filter(|ratio| (0.0..=1.0).contains(ratio))
            .unwrap_or_else(|| {
                self.wrong(name, &text, "expected a number from 0 to 1");
                1.0
            })
    }

    fn has_content(&mut self) -> bool {
        let text = self.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        let text = text.map(|text| text.to_ascii_lowercase());
        matches!(
            text.as_deref(),
            Some("true" | "span_only" | "span_and_event")
        )
    }
}

/// Reads `a=1,b=2`. Values are percent-encoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.trim().to_owned(), decoded(value.trim())));
    pairs.filter(|(key, _)| !key.is_empty()).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *byte == b'%');
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use flowstone_engine::trace::TraceId;

    use super::{Protocol, Settings};

    fn read(variables: &[(&str, &str)]) -> (Option<Settings>, Vec<String>) {
        Settings::read(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");

    #[test]
    fn without_an_endpoint_nothing_is_sent() {
        assert!(read(&[]).0.is_none());
        assert!(read(&[ENDPOINT, ("OTEL_SDK_DISABLED", "true")]).0.is_none());
        assert!(
            read(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")])
                .0
                .is_none()
        );
        let (settings, problems) = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(
            settings.is_none() && problems[0].contains("grpc"),
            "{problems:?}"
        );
        let secret = ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://me:hunter2@host");
        let (settings, problems) = read(&[secret]);
        assert!(
            settings.is_none() && !problems[0].contains("hunter2"),
            "{problems:?}"
        );
    }

    #[test]
    fn the_usual_variables_are_read() {
        let (settings, problems) = read(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Basic%20YTpi,x-team=a",
            ),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-team=b"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2000"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_SERVICE_NAME", "orders"),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "service.name=other,deployment.environment.name=test",
            ),
        ]);
        assert!(problems.is_empty(), "{problems:?}");
        let settings = settings.expect("settings");
        assert_eq!(
            settings.endpoint.as_str(),
            "http://127.0.0.1:4318/v1/traces"
        );
        assert_eq!(settings.protocol, Protocol::Json);
        assert_eq!(settings.headers["authorization"], "Basic YTpi");
        assert_eq!(settings.headers["x-team"], "b");
        assert_eq!(settings.timeout.as_millis(), 2000);
        assert!(settings.gzip && !settings.has_content);
        let of = |key: &str| {
            let found = settings.resource.iter().find(|(known, _)| known == key);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(of("service.name"), Some("orders"));
        assert_eq!(of("deployment.environment.name"), Some("test"));
    }

    #[test]
    fn samplers_decide_by_parent_and_ratio() {
        let sampler = |name: &str, ratio: &str| {
            let variables = [
                ENDPOINT,
                ("OTEL_TRACES_SAMPLER", name),
                ("OTEL_TRACES_SAMPLER_ARG", ratio),
            ];
            read(&variables).0.expect("settings").sampler
        };
        let (low, high) = (TraceId::from_bits(1), TraceId::from_bits(u128::MAX));
        let usual = read(&[ENDPOINT]).0.expect("settings").sampler;
        assert!(usual.samples(high, None) && usual.samples(high, Some(true)));
        assert!(!usual.samples(high, Some(false)));
        let half = sampler("parentbased_traceidratio", "0.5");
        assert!(half.samples(low, None) && !half.samples(high, None));
        assert!(half.samples(high, Some(true)) && !half.samples(low, Some(false)));
        let half = sampler("traceidratio", "0.5");
        assert!(half.samples(low, Some(false)) && !half.samples(high, Some(true)));
        assert!(!sampler("always_off", "").samples(low, Some(true)));
        assert!(!sampler("traceidratio", "0").samples(low, None));
    }
}

//! Ids of traces and spans, and the text in which programs pass them on (`traceparent` of W3C Trace Context).
//!
//! The span ids of a run are derived from the run and the place of the step, so every process that executes the run,
//! also after a crash, gives a span the same id.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::ids::RunId;

/// The id of a trace: all spans that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// The id of a span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// Returns the trace of a run tree that was started without a trace of its caller.
    pub fn of_root(root: &RunId) -> TraceId {
        derived(&["flowstone/trace/", root.as_str()].concat()).map_or(TraceId([1; 16]), TraceId)
    }

    /// Returns the trace id with these bits.
    pub fn from_bits(bits: u128) -> TraceId {
        TraceId(bits.max(1).to_be_bytes())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bits by which ratio-based samplers decide.
    pub fn low_bits(&self) -> u64 {
        self.0[8..]
            .iter()
            .fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
    }
}

impl SpanId {
    /// Returns the span id with these bits.
    pub fn from_bits(bits: u64) -> SpanId {
        SpanId(bits.max(1).to_be_bytes())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The kinds of spans of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpanOf {
    Run,
    /// A step, or the call of a tool.
    Step,
    Attempt,
    Agent,
    Chat,
}

impl SpanOf {
    fn name(self) -> &'static str {
        match self {
            SpanOf::Run => "run",
            SpanOf::Step => "step",
            SpanOf::Attempt => "attempt",
            SpanOf::Agent => "agent",
            SpanOf::Chat => "chat",
        }
    }
}

/// The place of a span in its run, from which its id is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanPlace<'a> {
    pub run: &'a RunId,
    pub pass: i64,
    /// The path of the step; empty for the run itself.
    pub path: &'a str,
    /// The number of the attempt; 0 for a span that is not a single attempt.
    pub attempt: u32,
    pub of: SpanOf,
}

impl<'a> SpanPlace<'a> {
    /// Returns the place of a run itself, which has one span for all its passes.
    pub fn run(run: &'a RunId) -> SpanPlace<'a> {
        SpanPlace {
            run,
            pass: 0,
            path: "",
            attempt: 0,
            of: SpanOf::Run,
        }
    }

    /// Returns the id of the span at this place.
    pub fn id(&self) -> SpanId {
        let SpanPlace {
            run,
            pass,
            path,
            attempt,
            of,
        } = self;
        let text = format!("{run}\n{pass}\n{path}\n{attempt}\n{}", of.name());
        derived(&text).map_or(SpanId([1; 8]), SpanId)
    }
}

/// Returns the first bytes of a digest. Ids of zeros are invalid, so such a digest is hashed again.
fn derived<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut digest = Sha256::digest(text.as_bytes());
    for _ in 0..4 {
        let bytes: [u8; N] = digest.get(..N)?.try_into().ok()?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Some(bytes);
        }
        digest = Sha256::digest(digest);
    }
    None
}

fn hex(bytes: &[u8], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, out)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, out)
    }
}

/// A span in the form that programs pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: TraceId,
    pub span: SpanId,
    /// Tells whether the spans of the trace are recorded.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Parses a `traceparent`: `00-TRACE-SPAN-FLAGS` in lower-case hexadecimal digits. Later versions may have more
    /// parts. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let mut parts = text.split('-');
        let version: [u8; 1] = bytes(parts.next()?)?;
        let trace: [u8; 16] = bytes(parts.next()?)?;
        let span: [u8; 8] = bytes(parts.next()?)?;
        let flags: [u8; 1] = bytes(parts.next()?)?;
        let has_more = parts.next().is_some();
        let is_known = version[0] == 0 && !has_more || !matches!(version[0], 0 | 0xff);
        let is_named = trace != [0; 16] && span != [0; 8];
        (is_known && is_named).then_some(TraceParent {
            trace: TraceId(trace),
            span: SpanId(span),
            is_sampled: flags[0] & 1 == 1,
        })
    }
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(out, "00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

/// The relation of a run to the trace of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceOrigin {
    /// The run belongs to the trace, below this span.
    Parent(TraceParent),
    /// The run has a trace of its own and refers to this span, because the sender that named it may not write into
    /// other traces.
    Link(TraceParent),
}

const LINK: &str = "link:";

impl TraceOrigin {
    /// Parses the text of a [`TraceOrigin`].
    pub fn parse(text: &str) -> Option<TraceOrigin> {
        match text.strip_prefix(LINK) {
            Some(linked) => TraceParent::parse(linked).map(TraceOrigin::Link),
            None => TraceParent::parse(text).map(TraceOrigin::Parent),
        }
    }
}

impl fmt::Display for TraceOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceOrigin::Parent(parent) => parent.fmt(out),
            TraceOrigin::Link(linked) => write!(out, "{LINK}{linked}"),
        }
    }
}

/// The trace of a run, and its place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTrace {
    pub run: RunId,
    pub pass: i64,
    pub trace: TraceId,
    /// The span above that of the run.
    pub parent: Option<TraceParent>,
    pub link: Option<TraceParent>,
    /// Tells whether the program that began the trace records it, if that is another one.
    pub remote: Option<bool>,
}

impl RunTrace {
    /// Returns the place of a step in this pass.
    pub fn step<'a>(&'a self, path: &'a str) -> SpanPlace<'a> {
        SpanPlace {
            run: &self.run,
            pass: self.pass,
            path,
            attempt: 0,
            of: SpanOf::Step,
        }
    }

    /// Returns the place of an attempt at a step of a type. For an `llm` step, this is the call of the model.
    pub fn attempt<'a>(&'a self, path: &'a str, kind: &str, attempt: u32) -> SpanPlace<'a> {
        SpanPlace {
            attempt,
            of: match kind {
                "llm" => SpanOf::Chat,
                _ => SpanOf::Attempt,
            },
            ..self.step(path)
        }
    }

    /// Returns the span at a place in the form that programs pass on.
    pub fn handed_on(&self, place: SpanPlace<'_>, is_sampled: bool) -> TraceParent {
        TraceParent {
            trace: self.trace,
            span: place.id(),
            is_sampled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SpanOf, SpanPlace, TraceId, TraceOrigin, TraceParent};
    use crate::ids::RunId;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_read_and_written() {
        let parent = TraceParent::parse(GOOD).expect("a traceparent");
        assert_eq!(parent.to_string(), GOOD);
        assert!(parent.is_sampled);
        let link = format!("link:{GOOD}");
        let origin = TraceOrigin::parse(&link).expect("a link");
        assert_eq!(origin, TraceOrigin::Link(parent));
        assert_eq!(origin.to_string(), link);
        // A later version may have more parts.
        assert!(TraceParent::parse(&format!("cc{}-more", &GOOD[2..])).is_some());
    }

    #[test]
    fn malformed_traceparents_are_rejected() {
        let zero_trace = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
        let zero_span = "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01";
        let upper = GOOD.to_uppercase();
        let more = format!("{GOOD}-00");
        let version = format!("ff{}", &GOOD[2..]);
        for text in [
            "",
            "00",
            zero_trace,
            zero_span,
            &upper,
            &more,
            &version,
            &GOOD[..54],
        ] {
            assert_eq!(TraceParent::parse(text), None, "{text}");
        }
    }

    #[test]
    fn span_ids_are_derived_from_the_place() {
        let run = RunId::from_text("0123456789abcdef");
        assert_eq!(
            TraceId::of_root(&run).to_string(),
            "17cf380ad2223c7b1b7b49ce6a355d89"
        );
        let place = SpanPlace {
            run: &run,
            pass: 0,
            path: "order",
            attempt: 1,
            of: SpanOf::Attempt,
        };
        assert_eq!(place.id(), place.id());
        for other in [
            SpanPlace { pass: 1, ..place },
            SpanPlace {
                path: "other",
                ..place
            },
            SpanPlace {
                attempt: 2,
                ..place
            },
            SpanPlace {
                of: SpanOf::Step,
                ..place
            },
            SpanPlace::run(&run),
        ] {
            assert_ne!(other.id(), place.id());
        }
    }
}

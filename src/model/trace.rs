//! Names of traces and spans, and the text in which programs hand them on (`traceparent` of W3C Trace Context).
//!
//! The names of a run's spans follow from the run and the place of the step, so every process that works on a run, also
//! after a crash, gives a span the same name.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::ids::RunId;

/// Names a trace: all spans that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Names a span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// Returns the trace of a run tree that nobody with a trace of their own has started.
    pub fn of_root(root: &RunId) -> TraceId {
        derived(&["flowstone/trace/", root.as_str()].concat()).map_or(TraceId([1; 16]), TraceId)
    }

    /// Returns the id that these bits make.
    pub fn from_bits(bits: u128) -> TraceId {
        TraceId(bits.max(1).to_be_bytes())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bits by which a sampler with a ratio decides.
    pub fn low_bits(&self) -> u64 {
        self.0[8..]
            .iter()
            .fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
    }
}

impl SpanId {
    /// Returns the id that these bits make.
    pub fn from_bits(bits: u64) -> SpanId {
        SpanId(bits.max(1).to_be_bytes())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The kinds of spans that a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpanOf {
    Run,
    /// Also the call of a tool.
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

/// The place of a span in its run. Its id follows from this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanPlace<'a> {
    pub run: &'a RunId,
    pub pass: i64,
    /// Empty for the run itself.
    pub path: &'a str,
    /// 0 for what is not one attempt.
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

/// Returns the first bytes of a digest. Ids of zeros mean nothing, so such a digest is digested again.
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

/// A span as other programs name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: TraceId,
    pub span: SpanId,
    /// The spans of the trace are recorded.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Reads a `traceparent`: `00-TRACE-SPAN-FLAGS` in lower-case hexadecimal digits. Later versions may have more parts.
    /// Returns nothing for anything else.
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

/// What a run has to do with a trace of somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceOrigin {
    /// The run belongs to the trace, below this span.
    Parent(TraceParent),
    /// The run has a trace of its own and refers to this span, because the sender that named it may not write into other traces.
    Link(TraceParent),
}

const LINK: &str = "link:";

impl TraceOrigin {
    /// Reads what [`TraceOrigin`] is written as.
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

/// A run in its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTrace {
    pub run: RunId,
    pub pass: i64,
    pub trace: TraceId,
    /// The span above that of the run.
    pub parent: Option<TraceParent>,
    pub link: Option<TraceParent>,
    /// Whether the program that began the trace records it, where that is another one.
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

    /// Returns the place of an attempt at a step of a type. What a model is asked belongs to the call of the model.
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

    /// Returns the span at a place as other programs name it.
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
    fn ids_follow_from_the_place() {
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

//! Redaction: finds known secrets in text and bytes, in each form in which text may hold them, and replaces them.
//!
//! One automaton searches for all forms of all secrets of a run at once, so that the cost is linear in the text,
//! however many secrets there are. It recognises the escapes of EDN, JSON, HTML and addresses, and Base64 and
//! hexadecimal digits at any offset. Text with escapes is searched again after each of [`LEVELS`] decodings, so that
//! escapes nested in one another are found too. A secret that was encrypted, compressed or split is not found.
//!
//! Where a text was cut, as `...` or `…` shows, the beginning of a secret in front of it is replaced as well.

mod decode;
mod edn;
mod forms;
mod html_name;
mod stream;

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use regex_automata::hybrid::dfa;
use regex_automata::hybrid::regex::{Cache, Regex};
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Input, Span};
use serde_json::Value as Json;

use crate::secret::Secret;

use decode::{Decoded, decode};
pub use stream::RedactStream;

/// The text that replaces a secret.
pub const SECRET: &str = "[secret]";
/// Minimum length of a secret: replacing a shorter one would damage ordinary text.
pub const SHORTEST: usize = 6;
/// How many times escapes are decoded. One more level is found by the automaton itself.
pub const LEVELS: usize = 4;
/// The texts that show where something was cut.
const CUTS: [&[u8]; 2] = ["…".as_bytes(), b"..."];
/// Maximum size in bytes of the automaton's state cache.
const CACHE_BYTES: usize = 16 << 20;
/// Maximum number of sets of secrets for which an engine keeps automata.
const KEPT_SETS: usize = 32;

/// Texts that are not secrets: redacting them would damage ordinary text.
const COMMON: &[&str] = &[
    "bearer",
    "changeme",
    "content",
    "default",
    "example",
    "flowstone",
    "message",
    "password",
    "secret",
    "string",
];

/// Returns the first `chars` characters of a text. A cut leaves `…`, in front of which redaction also finds the beginning
/// of a secret; cutting is therefore safe before and after redaction.
pub fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns why a text cannot serve as a secret; `None` if it can.
pub fn weakness(text: &str) -> Option<String> {
    let count = text.chars().count();
    if text.len() < SHORTEST {
        return Some(format!(
            "it has {count} characters, and a secret needs at least {SHORTEST} to be kept out of journals"
        ));
    }
    let lower = text.to_ascii_lowercase();
    let first = text.chars().next();
    if COMMON.contains(&lower.as_str()) || text == SECRET {
        return Some("it is an ordinary word, which cannot be kept out of journals".to_owned());
    }
    if text.chars().all(|char| Some(char) == first) {
        return Some("it repeats one character, which cannot be kept out of journals".to_owned());
    }
    None
}

/// Finds and replaces a set of secrets.
pub struct Redactor {
    /// The automaton; `None`: there are no secrets.
    matcher: Option<Matcher>,
}

struct Matcher {
    regex: Arc<Regex>,
    caches: Pool<Cache, MakeCache>,
    /// Secrets that a reader of data may parse as numbers.
    numbers: Vec<String>,
    /// The distance in bytes within which the beginning of a secret is looked for in front of a cut.
    longest: usize,
}

type MakeCache =
    Box<dyn Fn() -> Cache + Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>;

impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Redactor(…)")
    }
}

impl Redactor {
    /// Creates a redactor of secrets. Those that [`weakness`] refuses are left out.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Redactor {
        let secrets: Vec<&str> = secrets.into_iter().map(Secret::reveal).collect();
        // The escapes in a secret itself are decoded with those around it.
        let decoded = secrets.iter().flat_map(|text| decodings(text));
        let mut texts: Vec<String> = decoded.collect();
        texts.extend(secrets.iter().map(|text| (*text).to_owned()));
        texts.retain(|text| weakness(text).is_none());
        // Of two secrets that begin alike, the longer one is replaced.
        texts.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        texts.dedup();
        Redactor {
            matcher: (!texts.is_empty()).then(|| Matcher::new(&texts)),
        }
    }

    /// Tells whether there are no secrets to find.
    pub fn is_empty(&self) -> bool {
        self.matcher.is_none()
    }

    /// Tells whether a text or bytes contain a secret.
    pub fn holds(&self, bytes: impl AsRef<[u8]>) -> bool {
        let bytes = bytes.as_ref();
        self.matcher
            .as_ref()
            .is_some_and(|matcher| matcher.finds(bytes))
    }

    /// Redacts plain text, such as a message.
    pub fn text(&self, text: String) -> String {
        match self.bytes_of(text.as_bytes()) {
            Some(clean) => into_text(clean),
            None => text,
        }
    }

    /// Redacts bytes.
    pub fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        self.bytes_of(&bytes).unwrap_or(bytes)
    }

    /// Redacts EDN text that [`crate::codec`] wrote, so that it can still be read.
    pub fn edn(&self, text: String) -> String {
        match self.holds(&text) {
            true => edn::clean(self, &text, edn::Tokens::Redacted),
            false => text,
        }
    }

    /// Redacts only the strings of EDN text: keys and numbers are the engine's own.
    pub fn edn_strings(&self, text: String) -> String {
        match self.holds(&text) {
            true => edn::clean(self, &text, edn::Tokens::Kept),
            false => text,
        }
    }

    /// Tells whether a number is a secret. A number that merely contains the digits of one is not.
    pub(crate) fn is_number(&self, digits: &str) -> bool {
        let digits = digits
            .trim_start_matches(['-', '+'])
            .trim_end_matches(['N', 'M']);
        let matcher = self.matcher.as_ref();
        matcher.is_some_and(|matcher| matcher.numbers.iter().any(|number| number == digits))
    }

    /// Redacts JSON, so that it stays JSON.
    pub fn json(&self, json: Json) -> Json {
        match json {
            _ if self.is_empty() => json,
            Json::String(text) => Json::String(self.text(text)),
            Json::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Json::Object(map) => {
                let entries = map.into_iter();
                let clean = entries.map(|(key, value)| (self.text(key), self.json(value)));
                Json::Object(clean.collect())
            }
            Json::Number(number) if self.is_number(&number.to_string()) => Json::from(SECRET),
            Json::Null | Json::Bool(_) | Json::Number(_) => json,
        }
    }

    /// Redacts consecutive parts, including secrets that lie across two of them.
    pub fn parts(&self, parts: &mut [Vec<u8>]) {
        let Some(matcher) = &self.matcher else {
            return;
        };
        let whole = parts.concat();
        let found = matcher.all(&whole);
        if found.is_empty() {
            return;
        }
        let mut start = 0;
        for part in parts {
            let end = start + part.len();
            let mut clean = Vec::with_capacity(part.len());
            let mut from = start;
            for span in found
                .iter()
                .filter(|span| span.end > start && span.start < end)
            {
                if span.start >= start {
                    clean.extend_from_slice(&whole[from..span.start]);
                    clean.extend_from_slice(SECRET.as_bytes());
                }
                from = span.end.min(end);
            }
            clean.extend_from_slice(&whole[from..end]);
            *part = clean;
            start = end;
        }
    }

    /// Returns the bytes without the secrets; `None` if they contain none.
    pub(crate) fn bytes_of(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let matcher = self.matcher.as_ref()?;
        let found = matcher.all(bytes);
        if found.is_empty() {
            return None;
        }
        let mut clean = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for span in found {
            clean.extend_from_slice(&bytes[from..span.start]);
            clean.extend_from_slice(SECRET.as_bytes());
            from = span.end;
        }
        clean.extend_from_slice(&bytes[from..]);
        Some(clean)
    }
}

/// Returns a text after each level of decoding, as long as there are escapes.
fn levels(bytes: &[u8]) -> impl Iterator<Item = Rc<Decoded>> + '_ {
    let first = Some(Rc::new(decode(bytes)));
    let next = |level: &Rc<Decoded>| Some(Rc::new(decode(&level.bytes)));
    std::iter::successors(first, next)
        .take_while(|level| !level.is_unchanged())
        .take(LEVELS)
}

/// Returns the texts that a secret becomes when the text around it is decoded.
fn decodings(text: &str) -> Vec<String> {
    let levels = levels(text.as_bytes());
    levels
        .filter_map(|level| String::from_utf8(level.bytes.clone()).ok())
        .collect()
}

/// Returns places in order, those that overlap as one.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

/// Matches lie at boundaries of characters, so that the rest is valid text.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl Matcher {
    fn new(texts: &[String]) -> Matcher {
        let patterns: Vec<String> = texts
            .iter()
            .flat_map(|text| forms::patterns(text))
            .collect();
        let regex = Regex::builder()
            .syntax(syntax::Config::new().unicode(false).utf8(false))
            .thompson(thompson::Config::new().utf8(false).nfa_size_limit(None))
            .dfa(
                dfa::Config::new()
                    .cache_capacity(CACHE_BYTES)
                    .skip_cache_capacity_check(true),
            )
            .build_many(&patterns)
            .expect("the patterns are made of escaped bytes");
        let regex = Arc::new(regex);
        let maker = regex.clone();
        let make: MakeCache = Box::new(move || maker.create_cache());
        Matcher {
            regex,
            caches: Pool::new(make),
            longest: 12 * texts.iter().map(String::len).max().unwrap_or_default(),
            numbers: texts
                .iter()
                .filter(|text| forms::is_like_number(text))
                .cloned()
                .collect(),
        }
    }

    /// Tells whether there is a secret.
    fn finds(&self, bytes: &[u8]) -> bool {
        let mut cache = self.caches.get();
        let mut finds = |bytes: &[u8]| {
            self.find_with(&mut cache, bytes, 0).is_some()
                || !self.cut(&mut cache, bytes).is_empty()
        };
        finds(bytes) || levels(bytes).any(|level| finds(&level.bytes))
    }

    fn find_with(&self, cache: &mut Cache, bytes: &[u8], from: usize) -> Option<Span> {
        let input = Input::new(bytes).range(from.min(bytes.len())..);
        let found = self.regex.try_search(cache, &input);
        let found = found.expect("the automaton never gives up")?;
        Some(found.span())
    }

    /// Returns the places of all secrets, in order. Overlapping ones are merged.
    fn all(&self, bytes: &[u8]) -> Vec<Span> {
        let mut cache = self.caches.get();
        let mut spans = self.plain(&mut cache, bytes);
        let mut above: Vec<Rc<Decoded>> = Vec::new();
        for level in levels(bytes) {
            let found = self.plain(&mut cache, &level.bytes);
            above.push(level);
            let source = |span| {
                above
                    .iter()
                    .rev()
                    .fold(span, |span, level| level.source(span))
            };
            spans.extend(found.into_iter().map(source));
        }
        merged(spans)
    }

    /// Returns the places of secrets in text as it is. They may overlap.
    fn plain(&self, cache: &mut Cache, bytes: &[u8]) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut from = 0;
        while let Some(found) = self.find_with(cache, bytes, from) {
            spans.push(found);
            // Another match may begin inside this one.
            from = found.start + 1;
        }
        spans.extend(self.cut(cache, bytes));
        spans
    }

    /// Returns the places of secrets that were cut: their beginnings in front of `…` or `...`.
    fn cut(&self, cache: &mut Cache, bytes: &[u8]) -> Vec<Span> {
        let mut spans = Vec::new();
        for mark in CUTS {
            let mut after = 0;
            for end in memchr::memmem::find_iter(bytes, mark) {
                // There may be a space or ` [` in front of the mark.
                let before = bytes[after..end].iter().rev().take(2);
                let apart = before.take_while(|byte| b" [\n".contains(byte)).count();
                for end in end - apart..=end {
                    let first = after.max(end.saturating_sub(self.longest));
                    let begins = (first..(end + 1).saturating_sub(SHORTEST))
                        .find(|from| self.may_continue(cache, &bytes[..end], *from));
                    spans.extend(begins.map(|start| Span { start, end }));
                }
                after = end + mark.len();
            }
        }
        spans
    }

    /// Returns the place from which more text may complete a secret; the end of the bytes without such a place.
    fn open(&self, bytes: &[u8]) -> usize {
        let mut cache = self.caches.get();
        let mut first = |bytes: &[u8]| {
            let mut places = 0..bytes.len();
            places.find(|from| self.may_continue(&mut cache, bytes, *from))
        };
        let mut open = first(bytes).unwrap_or(bytes.len());
        let mut above: Vec<Decoded> = Vec::new();
        while above.len() < LEVELS {
            let source = above.last().map_or(bytes, |level| &level.bytes);
            let level = decode(source).without_cut(source);
            if level.is_unchanged() && level.open.is_none() {
                break;
            }
            let end = level.bytes.len();
            let from = first(&level.bytes).unwrap_or(end);
            // The escape that is cut may become any character.
            let is_open = from < end || level.open.is_some();
            above.push(level);
            if is_open {
                let levels = above.iter().rev();
                open = open.min(levels.fold(from, |at, level| level.source_of(at)));
            }
        }
        open
    }

    /// Tells whether the bytes from a place to their end are the beginning of a form of a secret, or one that may
    /// continue.
    fn may_continue(&self, cache: &mut Cache, bytes: &[u8], from: usize) -> bool {
        let forward = self.regex.forward();
        let cache = cache.as_parts_mut().0;
        let input = Input::new(bytes)
            .range(from..)
            .anchored(regex_automata::Anchored::Yes);
        let mut state = forward
            .start_state_forward(cache, &input)
            .expect("anchored searches are allowed");
        for byte in &bytes[from..] {
            state = forward
                .next_state(cache, state, *byte)
                .expect("the automaton never gives up");
            if state.is_dead() {
                return false;
            }
        }
        true
    }
}

/// The redactors of an engine, shared by runs with the same secrets.
#[derive(Clone, Default)]
pub struct Redactors(Arc<Mutex<Vec<Kept>>>);

type Kept = (Vec<Secret>, Arc<Redactor>);

impl Redactors {
    /// Returns the redactor of these secrets.
    pub fn of(&self, secrets: &[Secret]) -> Arc<Redactor> {
        if secrets.is_empty() {
            return Arc::new(Redactor { matcher: None });
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(known, _)| known == secrets) {
            let found = kept.remove(at);
            let redactor = found.1.clone();
            kept.push(found);
            return redactor;
        }
        let redactor = Arc::new(Redactor::new(secrets));
        if kept.len() == KEPT_SETS {
            kept.remove(0);
        }
        kept.push((secrets.to_vec(), redactor.clone()));
        redactor
    }
}

impl fmt::Debug for Redactors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Redactors(…)")
    }
}

//! What a model of the Claude line takes, told from its name.
//!
//! The interface changed from one generation to the next, and refuses what it no longer takes. A name that
//! is not of the line belongs to a server that imitates the interface: it gets the oldest, widest known form.

/// A generation: `claude-opus-4-8` is 4.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claude {
    major: u32,
    minor: u32,
}

/// How a request controls the amount of thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// It does not think.
    Never,
    /// In tokens, a part of the answer's limit.
    Budget,
    /// By effort; it decides itself how much. Without being asked it does not.
    Asked,
    /// By effort; it thinks unless told not to.
    Usual,
    /// By effort; it cannot be told not to.
    Always,
}

impl Claude {
    /// The newest known.
    const NEWEST: Claude = Claude { major: 5, minor: 5 };

    /// Reads a model's name, as the makers or a cloud write it: `claude-3-5-sonnet-20241022`,
    /// `eu.anthropic.claude-opus-4-5-20251101-v1:0`, `anthropic/claude-4.6-sonnet`.
    pub fn of(model: &str) -> Option<Claude> {
        let lower = model.to_ascii_lowercase();
        let (_, rest) = lower.split_once("claude")?;
        let mut numbers = Vec::new();
        for word in rest.split(|it: char| !it.is_ascii_alphanumeric()) {
            match word.parse::<u32>() {
                Ok(number) if number < 100 => numbers.push(number),
                // A date, or a version of the cloud's: what follows is no longer the generation.
                Ok(_) => break,
                Err(_) if numbers.is_empty() => {}
                Err(_) => break,
            }
        }
        Some(match numbers.as_slice() {
            [] => Claude::NEWEST,
            [major] => Claude {
                major: *major,
                minor: 0,
            },
            [major, minor, ..] => Claude {
                major: *major,
                minor: *minor,
            },
        })
    }

    fn is_from(self, major: u32, minor: u32) -> bool {
        self >= Claude { major, minor }
    }

    /// Tells whether it can be held to a JSON Schema.
    pub fn takes_schema(model: &str) -> bool {
        Claude::of(model).is_some_and(|it| it.is_from(4, 5))
    }

    /// Tells whether `temperature` and `top_p` may be other than usual.
    pub fn takes_sampling(model: &str) -> bool {
        Claude::of(model).is_none_or(|it| !it.is_from(4, 7))
    }

    /// Tells whether it may be made to call a tool.
    pub fn can_be_forced(model: &str) -> bool {
        Claude::of(model).is_none_or(|it| !it.is_from(5, 5))
    }

    /// Tells how it thinks.
    pub fn thinking(model: &str) -> Thinking {
        match Claude::of(model) {
            None => Thinking::Budget,
            Some(it) if it.is_from(5, 5) => Thinking::Always,
            Some(it) if it.is_from(5, 0) => Thinking::Usual,
            Some(it) if it.is_from(4, 6) => Thinking::Asked,
            Some(it) if it.is_from(3, 7) => Thinking::Budget,
            Some(_) => Thinking::Never,
        }
    }

    /// Tells whether its thoughts come only when asked for.
    pub fn hides_thoughts(model: &str) -> bool {
        Claude::of(model).is_some_and(|it| it.is_from(4, 7))
    }

    /// Returns how long an answer may be when nobody says it. With thoughts that count, more is needed.
    pub fn usual_limit(model: &str) -> i64 {
        match Claude::of(model) {
            Some(it) if it.is_from(4, 6) => 32_000,
            Some(it) if it.is_from(3, 7) => 16_000,
            _ => 4_096,
        }
    }
}

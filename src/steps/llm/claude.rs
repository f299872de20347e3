//! The features of Claude models, derived from their names.
//!
//! The API changed from one generation to the next, and rejects options that it no longer supports. Other names belong
//! to servers that imitate the API, and get the oldest known form, which is the most widely supported.

/// A generation: `claude-opus-4-8` is 4.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claude {
    major: u32,
    minor: u32,
}

/// How a request controls the amount of thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// The model does not think.
    Never,
    /// A budget in tokens, which is part of the answer's limit.
    Budget,
    /// By effort; the model decides the amount. By default, it does not think.
    Asked,
    /// By effort; the model thinks unless thinking is turned off.
    Usual,
    /// By effort; thinking cannot be turned off.
    Always,
}

impl Claude {
    /// The newest known generation.
    const NEWEST: Claude = Claude { major: 5, minor: 5 };

    /// Reads the name of a model, as Anthropic or a cloud writes it: `claude-3-5-sonnet-20241022`,
    /// `eu.anthropic.claude-opus-4-5-20251101-v1:0`, `anthropic/claude-4.6-sonnet`.
    pub fn of(model: &str) -> Option<Claude> {
        let lower = model.to_ascii_lowercase();
        let (_, rest) = lower.split_once("claude")?;
        let mut numbers = Vec::new();
        for word in rest.split(|it: char| !it.is_ascii_alphanumeric()) {
            match word.parse::<u32>() {
                Ok(number) if number < 100 => numbers.push(number),
                // A date, or a version of the cloud, which is not part of the generation.
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

    /// Tells whether a model can be constrained to a JSON Schema.
    pub fn takes_schema(model: &str) -> bool {
        Claude::of(model).is_some_and(|it| it.is_from(4, 5))
    }

    /// Tells whether `temperature` and `top_p` may be changed.
    pub fn takes_sampling(model: &str) -> bool {
        Claude::of(model).is_none_or(|it| !it.is_from(4, 7))
    }

    /// Tells whether a model can be forced to call a tool.
    pub fn can_be_forced(model: &str) -> bool {
        Claude::of(model).is_none_or(|it| !it.is_from(5, 5))
    }

    /// Returns how the thinking of a model is controlled.
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

    /// Tells whether the thoughts of a model are only returned on request.
    pub fn hides_thoughts(model: &str) -> bool {
        Claude::of(model).is_some_and(|it| it.is_from(4, 7))
    }

    /// Returns the default maximum length of an answer. With thoughts that count, more is needed.
    pub fn usual_limit(model: &str) -> i64 {
        match Claude::of(model) {
            Some(it) if it.is_from(4, 6) => 32_000,
            Some(it) if it.is_from(3, 7) => 16_000,
            _ => 4_096,
        }
    }
}

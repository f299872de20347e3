//! The score that a second model call gives the answer, under `:evaluation` of the result.

//! `:output-persist`: the answer as a resource, under `:persisted-ref` of the result.

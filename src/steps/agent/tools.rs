//! Which tools an agent has, from `:available-steps` and the `:tools` envelope.
//!
//! What is here makes `Tool`s: `all(cx, config)` those of the config, and `of_hook(cx, name, map)` one that a hook added
//! as `{:type :ns/step :name "..."}`. Arguments are checked in a tool's `call`, before anything is performed.

//! What an agent remembers between runs: recall before the loop, the tools `memory_recall`, `memory_record`,
//! `memory_plan` and `memory_checkpoint`, a summary at the end.
//!
//! All of it is inner `:table` steps. The loop asks for the prior memories as text for the system prompt, for the tools,
//! whether the first call keeps to a strict plan, and hands over the result at the end.

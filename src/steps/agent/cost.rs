//! The ledger of what the agents of a flow cost: read before the loop, written after it, by inner `:kv` steps.

//! The trace of an agent: all turns and calls as one document, kept as a blob at the end.

//! A flow file, read, checked and compiled: what may be known without running it.

mod bindings;
mod bounds;
mod compile;
mod contents;
mod files;
mod lint;
mod load;
mod outside;
mod portable;
mod single;
mod text;
mod undeclared;

pub use crate::definition::{
    ACTIVATION, Concurrency, Contract, Flow, FlowFunction, FlowReading, Input, InputError,
    Invocation, McpAdapter, McpToolDefinition, McpTransport, Origin, PackagedStep, StartLimits,
    Starts, Template, activated, coerce_input, is_identifier, mcp_tool_name, wider_limits,
};
pub use crate::forms::is_known;
pub use bounds::{Around, Bounds, Called, Reason, bounds};
pub use contents::whole::{DEFINITION, INVOCATION};
pub use files::{FlowFiles, Siblings, StoredFiles};
pub use flowstone_model::names::name_of;
pub use lint::{Surroundings, unknown as lint_unknown};
pub use load::{Checked, LoadedFlow, Main, check_code, file_slug, read, reload};
pub use load::{ENGINE_ABI, program_digest, program_files, program_name, program_text};
pub use portable::portability;
pub use single::single;
pub use undeclared::undeclared_inputs;

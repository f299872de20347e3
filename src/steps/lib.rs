//! One file for each step type, one for each model provider.

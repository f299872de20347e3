//! Walks through small trees, which follow from the published rules.

/// A tree, the answers, and what is asked for with the end. `seq`, `sel` and `par` are composites; `*1` is a number of retries;
/// `A` is an action with one instruction, `A:ie` one with an instruction and an evaluation, and `@` a cycle.
pub const WALKS: &[(&str, &str, &str)] = &[
    ("seq(A,B,C)", "+ + +", "A0 B0 C0 complete"),
    ("sel(A,B,C)", "- - +", "A0 B0 C0 complete"),
    ("sel(A,B,C)", "- - -", "A0 B0 C0 failed"),
    ("par(A,B,C)", "+ + +", "A0 B0 C0 complete"),
    ("par(A,B,C)", "+ -", "A0 B0 failed"),
    // Running offers no sibling.
    ("par(A,B,C)", "+ r r + +", "A0 B0 B0 B0 C0 complete"),
    // An action may end or begin with an evaluation.
    ("A:ie", "+ +", "A0 A1 complete"),
    ("A:ei", "-", "A0 failed"),
    ("A:iei", "+ + -", "A0 A1 A2 failed"),
    // A retry begins with the first step or child.
    ("A*1:iei", "+ - + + +", "A0 A1 A0 A1 A2 complete"),
    ("A*1", "- +", "A0 A0 complete"),
    ("sel*1(A,B)", "- - - +", "A0 B0 A0 B0 complete"),
    ("seq*1(A,B)", "+ - + +", "A0 B0 A0 B0 complete"),
    ("par*1(A,B,C)", "+ - + + +", "A0 B0 A0 B0 C0 complete"),
    ("par(A,B*1,C)", "+ - + +", "A0 B0 B0 C0 complete"),
    ("seq*1(A*1)", "- - -", "A0 A0 A0 failed"),
    (
        "seq(A,par*1(B,C),D)",
        "+ + - + + +",
        "A0 B0 C0 B0 C0 D0 complete",
    ),
    // Composites in composites.
    ("sel(seq(A,B),C)", "+ - +", "A0 B0 C0 complete"),
    ("seq(sel(A,B),C)", "- + +", "A0 B0 C0 complete"),
    ("seq(sel(A,B),C)", "- -", "A0 B0 failed"),
    ("par(seq(A,B),C)", "+ + +", "A0 B0 C0 complete"),
    ("par(seq(A,B),C)", "+ -", "A0 B0 failed"),
    ("sel(par(A,B),C)", "- +", "A0 C0 complete"),
    // A cycle fails as soon as it is ticked.
    ("par(A,@)", "", "failed"),
    ("sel(@,A)", "+", "A0 complete"),
];

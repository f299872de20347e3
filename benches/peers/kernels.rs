//! The rows of the table: what is measured, and what is wanted of it.

/// A program that every peer runs, in `benches/kernels/<name>.cljc` and perhaps in other languages.
pub struct Kernel {
    pub name: &'static str,
    /// Milliseconds, where `language.md` names a target.
    pub target: Option<f64>,
    /// A file that stands before it.
    pub needs: Option<&'static str>,
}

const fn kernel(name: &'static str, target: Option<f64>) -> Kernel {
    Kernel {
        name,
        target,
        needs: None,
    }
}

const fn on_rows(name: &'static str, target: f64) -> Kernel {
    Kernel {
        name,
        target: Some(target),
        needs: Some("rows"),
    }
}

pub const KERNELS: &[Kernel] = &[
    kernel("fib", Some(30.0)),
    kernel("loop", Some(33.0)),
    kernel("pipeline", Some(50.0)),
    kernel("transducers", Some(25.0)),
    kernel("map_build", Some(60.0)),
    kernel("vector_build", Some(60.0)),
    kernel("sort_by", Some(80.0)),
    on_rows("read_edn", 80.0),
    on_rows("print_edn", 60.0),
    kernel("throw_catch", Some(40.0)),
    kernel("atoms", None),
    kernel("closures", None),
    kernel("destructure", None),
    kernel("frequencies", None),
    kernel("into_transducers", None),
    kernel("keywords", None),
    kernel("lazy_seq", None),
    kernel("multimethods", None),
    kernel("pipeline_closures", None),
    kernel("protocols", None),
    kernel("regex", None),
    kernel("sieve", None),
    kernel("split_join", None),
    kernel("strings", None),
    kernel("update_in", None),
    kernel("vararg", None),
];

/// A whole process, from its start to its end.
pub struct Whole {
    pub name: &'static str,
    pub program: Program,
    /// Milliseconds.
    pub wall: Option<f64>,
    /// Milliseconds.
    pub cpu: Option<f64>,
    /// Megabytes.
    pub resident: f64,
}

/// What a process is given.
pub enum Program {
    Expression(&'static str),
    /// A file of `benches/kernels/memory`.
    File(&'static str),
}

pub const WHOLE: &[Whole] = &[
    Whole {
        name: "(+ 1 2)",
        program: Program::Expression("(+ 1 2)"),
        wall: Some(8.0),
        cpu: Some(6.0),
        resident: 12.0,
    },
    Whole {
        name: "memory of a pipeline",
        program: Program::File("pipeline"),
        wall: None,
        cpu: None,
        resident: 30.0,
    },
    Whole {
        name: "memory of a vector",
        program: Program::File("vector"),
        wall: None,
        cpu: None,
        resident: 80.0,
    },
    Whole {
        name: "memory of 5 MB of EDN",
        program: Program::File("edn"),
        wall: None,
        cpu: None,
        resident: 150.0,
    },
];

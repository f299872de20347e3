//! Concurrent branches of a flow: `all`, `pmap`, `race`, and the function behind the macro `let`.
//!
//! The arguments are checked here and made into one request. The executor starts the branches and combines their
//! results.

use std::rc::Rc;

use flowstone_lang::suggest::respelling;
use flowstone_lang::value::{Arity, Change, Class, Exception, Native, Result, Value, Var};
use flowstone_lang::vm::{Args, Vm};
use flowstone_model::names::name_of;

use super::{Request, ask};

/// Maximum number of concurrent branches of one call, if the flow does not set it.
const AT_ONCE: usize = 64;

/// How the results of several branches are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gather {
    /// All values, in the order of the branches.
    All,
    /// The name and the value of the first that finishes.
    First,
}

/// The effect of a failing branch on the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The others are cancelled, and the exception of the branch is thrown.
    Fail,
    /// The others continue; the value of the branch is nil.
    Continue,
    /// The others continue; the value of the branch is a map that describes the error.
    Collect,
}

impl OnFailure {
    /// Returns the meaning of `:fail`, `:continue` and `:collect`.
    pub(super) fn named(value: &Value) -> Option<OnFailure> {
        match name_of(value).as_deref() {
            Some("fail") => Some(OnFailure::Fail),
            Some("continue") => Some(OnFailure::Continue),
            Some("collect") => Some(OnFailure::Collect),
            _ => None,
        }
    }
}

/// The branches of a call.
#[derive(Debug, Clone)]
pub struct Branches {
    /// The id of the branches in the run, like the id of a step.
    pub id: String,
    pub gather: Gather,
    pub on_failure: OnFailure,
    /// Maximum number of concurrent branches.
    pub max: usize,
    pub nodes: Vec<Node>,
    /// The dynamic bindings at the place of the call.
    pub bound: Vec<(Rc<Var>, Value)>,
}

/// One branch.
#[derive(Debug, Clone)]
pub struct Node {
    /// The name of the branch, if branches have names.
    pub name: Value,
    pub function: Value,
    pub args: Vec<Value>,
    /// The indices of the branches whose values are further arguments; all are lower than that of this branch.
    pub needs: Vec<usize>,
}

fn index(value: &Value) -> Option<usize> {
    usize::try_from(value.as_int()?).ok()
}

/// The options of a call.
pub(super) struct Options {
    pub id: String,
    pub on_failure: OnFailure,
    pub max: usize,
}

impl Options {
    /// Reads the options of a call; nil stands for an empty map.
    fn read(caller: &str, given: &Value, known: &[&str]) -> Result<Options> {
        let mut options = Options {
            id: caller.to_owned(),
            on_failure: OnFailure::Fail,
            max: AT_ONCE,
        };
        if given.is_nil() {
            return Ok(options);
        }
        let Some(map) = given.as_map() else {
            let what = format!(
                "the options of `flow/{caller}` are a map, not {}",
                given.kind()
            );
            return Err(refused(what).into());
        };
        for (key, value) in map.iter() {
            let name = name_of(key).unwrap_or_default();
            if !known.contains(&&*name) {
                let error = refused(format!("`flow/{caller}` has no option `{}`", shown(key)));
                return Err(match respelling(&name, known.iter().copied()) {
                    Some(near) => error
                        .hint(format!("did you mean `:{}`?", near.name))
                        .change(Change::respell(&name, near)),
                    None => error.hint(format!("its options are {}", listed(known))),
                }
                .into());
            }
            match &*name {
                "max" => options.max = most(caller, value)?,
                "on-error" => options.on_failure = on_error(caller, value)?,
                _ => {
                    let id = name_of(value).filter(|id| !id.is_empty());
                    let Some(id) = id else {
                        let what = format!("`:id` of `flow/{caller}` is a keyword");
                        return Err(refused(what).into());
                    };
                    options.id = id.to_string();
                }
            }
        }
        Ok(options)
    }
}

fn most(caller: &str, value: &Value) -> Result<usize> {
    let max = index(value).filter(|max| *max > 0);
    max.ok_or_else(|| {
        refused(format!("`:max` of `flow/{caller}` is a number from 1 on"))
            .hint("it says how many branches are under way at once")
            .into()
    })
}

fn on_error(caller: &str, value: &Value) -> Result<OnFailure> {
    if let Some(found) = OnFailure::named(value) {
        return Ok(found);
    }
    Err(refused(format!(
        "`:on-error` of `flow/{caller}` must be one of :fail, :continue and :collect"
    ))
    .hint(":fail cancels the others, :continue gives nil, :collect gives {:error ...}")
    .into())
}

fn refused(what: String) -> Exception {
    Exception::new(Class::ILLEGAL_ARGUMENT, "E0541", what)
}

fn shown(value: &Value) -> String {
    crate::codec::encode(value).unwrap_or_else(|_| value.kind().to_owned())
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!(":{name}")).collect();
    names.join(", ")
}

/// Checks that a value can be called without arguments. The value of a step, which was performed already, cannot.
fn check_thunk(caller: &str, name: &Value, thunk: &Value) -> Result<()> {
    let is_thunk = matches!(
        thunk,
        Value::Fn(_) | Value::Native(_) | Value::Var(_) | Value::Object(_) | Value::Record(_)
    );
    if is_thunk {
        return Ok(());
    }
    let what = format!(
        "branch {} of `flow/{caller}` is {}, not a function",
        shown(name),
        thunk.kind()
    );
    Err(Exception::new(Class::ILLEGAL_ARGUMENT, "E0540", what)
        .hint("write it as a function without arguments: `#(flow/step ...)`")
        .into())
}

/// Returns a branch that needs no other branch.
pub(super) fn node(name: Value, function: Value, args: Vec<Value>) -> Node {
    Node {
        name,
        function,
        args,
        needs: Vec::new(),
    }
}

/// Leaves the VM with the branches.
pub(super) fn request(
    vm: &mut Vm,
    options: Options,
    gather: Gather,
    nodes: Vec<Node>,
) -> Result<Value> {
    let mut bound = Vec::new();
    for var in vm.bound_vars() {
        // The current namespace belongs to the session, not to the branch.
        if !Rc::ptr_eq(&var, &vm.world().ns_var) {
            let value = vm.var_value(&var)?;
            bound.push((var, value));
        }
    }
    let branches = Branches {
        id: options.id,
        gather,
        on_failure: options.on_failure,
        max: options.max,
        nodes,
        bound,
    };
    ask(vm, Request::Branches(Box::new(branches)))
}

fn items(vm: &mut Vm, args: &Args<'_>, idx: usize, expected: &str) -> Result<Vec<Value>> {
    match args.get(idx) {
        Value::Text(_) | Value::Fn(_) => Err(args.expected(idx, expected)),
        coll => vm.items(coll.clone()),
    }
}

/// Returns the number of arguments that a function has besides its options, and the names of the options.
pub fn options_of(function: &str) -> Option<(usize, &'static [&'static str])> {
    match function {
        "all" => Some((1, GROUP_OPTIONS)),
        "pmap" => Some((2, GROUP_OPTIONS)),
        "race" => Some((1, RACE_OPTIONS)),
        _ => None,
    }
}

/// Checks the options of a call.
///
/// # Errors
/// Fails with the first option that is wrong.
pub fn check_options(caller: &str, given: &Value, known: &[&str]) -> Result<()> {
    Options::read(caller, given, known).map(drop)
}

const RACE_OPTIONS: &[&str] = &["id"];
const GROUP_OPTIONS: &[&str] = &["id", "max", "on-error"];

pub(super) const ALL: Native = Native {
    name: "all",
    usage: "(all thunks)\n(all opts thunks)",
    doc: "Calls functions without arguments concurrently and returns their values, in order: \
          (flow/all [#(flow/step :http :user {...}) #(flow/step :http :orders {...})]). The first that fails \
          cancels the others and its exception is thrown. opts: :on-error :continue gives nil for what fails, \
          :collect gives {:error {...}}; :max, how many run at once (64); :id, their name in the run.",
    examples: &[],
    arity: Arity::between(1, 2),
    run: |vm, args| {
        let at = args.len() - 1;
        let given = if at == 1 { args.get(0) } else { &Value::Nil };
        let options = Options::read("all", given, GROUP_OPTIONS)?;
        let thunks = items(vm, &args, at, "functions without arguments")?;
        let mut nodes = Vec::with_capacity(thunks.len());
        for (idx, thunk) in thunks.into_iter().enumerate() {
            let name = Value::Int(i64::try_from(idx).unwrap_or(i64::MAX));
            check_thunk("all", &name, &thunk)?;
            nodes.push(node(name, thunk, Vec::new()));
        }
        request(vm, options, Gather::All, nodes)
    },
};

pub(super) const PMAP: Native = Native {
    name: "pmap",
    usage: "(pmap f coll)\n(pmap opts f coll)",
    doc: "Calls f with each item of coll, concurrently, and returns a vector of the values, in the order of \
          coll: (flow/pmap {:max 8} #(flow/step :http :page {:url %}) urls). opts as in flow/all. Of a long \
          coll, only :max items (64) run at once.",
    examples: &[],
    arity: Arity::between(2, 3),
    run: |vm, args| {
        let at = args.len() - 1;
        let given = if at == 2 { args.get(0) } else { &Value::Nil };
        let options = Options::read("pmap", given, GROUP_OPTIONS)?;
        let function = args.get(at - 1).clone();
        if !is_callable(&function) {
            return Err(args.expected(at - 1, "a function of an item"));
        }
        let nodes = vm.items(args.get(at).clone())?;
        let nodes = nodes.into_iter().enumerate().map(|(idx, item)| {
            let name = Value::Int(i64::try_from(idx).unwrap_or(i64::MAX));
            node(name, function.clone(), vec![item])
        });
        let nodes = nodes.collect();
        request(vm, options, Gather::All, nodes)
    },
};

/// Tells whether a value can probably be called. The call itself reports values that cannot.
fn is_callable(value: &Value) -> bool {
    !matches!(
        value,
        Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Seq(_)
            | Value::Lazy(_)
    )
}

pub(super) const RACE: Native = Native {
    name: "race",
    usage: "(race thunks)\n(race opts thunks)",
    doc: "Calls the functions of a map concurrently and returns the key and the value of the first that \
          finishes: (flow/race {:answer #(flow/step :wait :reply {...}) :late #(flow/step :sleep :hour \
          {:duration \"1h\"})}). The others are cancelled: their finally blocks run. When the first that \
          finishes does so by failing, its exception is thrown. A vector counts from 0. opts: :id, their name in \
          the run.",
    examples: &[],
    arity: Arity::between(1, 2),
    run: |vm, args| {
        let at = args.len() - 1;
        let given = if at == 1 { args.get(0) } else { &Value::Nil };
        let mut options = Options::read("race", given, RACE_OPTIONS)?;
        let named: Vec<(Value, Value)> = match args.get(at) {
            Value::Map(map) => map
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            Value::Vector(thunks) => (0..).map(Value::Int).zip(thunks.iter().cloned()).collect(),
            _ => return Err(args.expected(at, "a map of functions without arguments")),
        };
        if named.is_empty() {
            let error = refused("`flow/race` without branches never ends".to_owned());
            return Err(error.hint("give it at least one function").into());
        }
        let mut nodes = Vec::with_capacity(named.len());
        for (name, thunk) in named {
            check_thunk("race", &name, &thunk)?;
            nodes.push(node(name, thunk, Vec::new()));
        }
        options.max = usize::MAX;
        request(vm, options, Gather::First, nodes)
    },
};

pub(super) const GRAPH: Native = Native {
    name: "graph*",
    usage: "(graph* nodes)",
    doc: "Calls functions concurrently, each as soon as the values that it needs are known: the expansion of \
          flow/let. A node is [name f needs]; f gets the values of the nodes with the indices in needs, which are lower. \
          Returns the values of all nodes.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        let mut nodes: Vec<Node> = Vec::new();
        for given in vm.items(args.get(0).clone())? {
            let parts = vm.items(given)?;
            let [name, function, needs] = &parts[..] else {
                return Err(args.expected(
                    0,
                    "nodes of a name, a function and the indices of the nodes it needs",
                ));
            };
            let needed = vm.items(needs.clone())?;
            let needs = needed.iter().map(index).collect::<Option<Vec<usize>>>();
            let Some(needs) = needs.filter(|all| all.iter().all(|need| *need < nodes.len())) else {
                return Err(args.expected(0, "nodes that need only nodes before them"));
            };
            check_thunk("let", name, function)?;
            nodes.push(Node {
                name: name.clone(),
                function: function.clone(),
                args: Vec::new(),
                needs,
            });
        }
        let mut options = Options::read("let", &Value::Nil, &[])?;
        options.max = usize::MAX;
        request(vm, options, Gather::All, nodes)
    },
};

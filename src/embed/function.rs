//! Functions written in Rust, from any closure.

use std::fmt;
use std::marker::PhantomData;

use crate::convert::{IntoResult, Param};
use flowstone_lang::value::{Arity, NativeClosure, Object, Result, Value};
use flowstone_lang::vm::{Args, Vm};

type Run = Box<dyn Fn(&mut Vm, Args<'_>) -> Result<Value>>;

/// A function for [`Session::add`](crate::Embed::add): a name, a closure, and documentation for `doc`.
///
/// ```
/// use flowstone_embed::{Embed, Function, Session};
///
/// let session = Session::new();
/// session.add(
///     Function::new("shop/price", |net: f64, percent: Option<f64>| {
///         net * (1.0 + percent.unwrap_or(20.0) / 100.0)
///     })
///     .usage("(price net)\n(price net percent)")
///     .doc("Returns the price with tax."),
/// );
/// let price = session.evaluate("(shop/price 10 50)").expect("two numbers");
/// assert_eq!(price.to_string(), "15.0");
///
/// let failure = session.evaluate("(shop/price :free)").expect_err("a keyword");
/// assert!(failure.to_string().contains("shop/price got :free (a keyword) as argument 1"));
/// ```
pub struct Function {
    name: String,
    usage: String,
    doc: String,
    arity: Arity,
    run: Run,
}

impl Function {
    /// Creates a function from a closure. Its parameters are any [`FromValue`](super::FromValue), followed by
    /// `Option`s, which may be omitted, or one [`Rest`](super::Rest); with `&mut Vm` as first parameter it can call
    /// back. It returns any [`IntoResult`]. The name is `namespace/name`, or `name` for `user`.
    pub fn new<F, M>(name: &str, function: F) -> Function
    where
        F: NativeFn<M> + 'static,
        M: 'static,
    {
        Function::raw(name, F::arity(), move |vm, args| function.call(vm, args))
    }

    /// Creates a function that receives its arguments unconverted.
    pub fn raw(
        name: &str,
        arity: Arity,
        run: impl Fn(&mut Vm, Args<'_>) -> Result<Value> + 'static,
    ) -> Function {
        Function {
            name: name.to_owned(),
            usage: String::new(),
            doc: String::new(),
            arity,
            run: Box::new(run),
        }
    }

    /// Sets the usage: each arity as `(name arg ...)` on its own line.
    #[must_use]
    pub fn usage(mut self, usage: &str) -> Function {
        usage.clone_into(&mut self.usage);
        self
    }

    /// Sets the documentation.
    #[must_use]
    pub fn doc(mut self, doc: &str) -> Function {
        doc.clone_into(&mut self.doc);
        self
    }

    /// Returns the name of the function.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns metadata for the var, as printed by `doc`.
    pub(crate) fn meta(&self) -> Value {
        let arglists = self.usage.lines().filter_map(|line| {
            let form = flowstone_lang::reader::read_data(line).ok()?;
            let Value::List(list) = form else {
                return None;
            };
            Some(Value::vector(list.iter().skip(1).cloned()))
        });
        let arglists: Vec<Value> = arglists.collect();
        let mut meta = Vec::new();
        if !arglists.is_empty() {
            meta.push((Value::keyword("arglists"), Value::list(arglists)));
        }
        if !self.doc.is_empty() {
            meta.push((Value::keyword("doc"), Value::from(self.doc.as_str())));
        }
        Value::map(meta)
    }

    /// Returns the function as a value, to be passed instead of named.
    pub fn into_value(self) -> Value {
        Value::from(Object::Function(NativeClosure {
            name: self.name.into(),
            arity: self.arity,
            captured: [Value::from(Object::State(Box::new(self.run)))].into(),
            run: call,
            meta: Value::Nil,
        }))
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#native[{}]", self.name)
    }
}

fn call(vm: &mut Vm, closure: &NativeClosure, args: Args<'_>) -> Result<Value> {
    if let [Value::Object(object)] = &*closure.captured
        && let Object::State(state) = &**object
        && let Some(run) = state.downcast_ref::<Run>()
    {
        return run(vm, args);
    }
    unreachable!("a function of the host keeps its closure")
}

/// A Rust function or closure that can be called from the language. `M` only distinguishes the shapes.
pub trait NativeFn<M> {
    /// Returns the number of arguments that it takes.
    fn arity() -> Arity;

    /// Calls the function.
    ///
    /// # Errors
    /// An argument that does not fit, or the error that the function returns.
    fn call(&self, vm: &mut Vm, args: Args<'_>) -> Result<Value>;
}

/// Marker of functions with these parameters.
pub struct Plain<P>(PhantomData<P>);

/// Marker of functions whose first parameter is the machine, followed by these.
pub struct WithVm<P>(PhantomData<P>);

/// Returns the arity of parameters, each given as whether it is optional and whether it takes the rest.
fn arity(params: &[(bool, bool)]) -> Arity {
    let count = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
    let needed = params
        .iter()
        .rposition(|param| !param.0)
        .map_or(0, |at| at + 1);
    let is_open = params.last().is_some_and(|param| param.1);
    Arity {
        min: count(needed),
        max: (!is_open).then(|| count(params.len())),
    }
}

macro_rules! native_fn {
    ($($param:ident $name:ident $idx:literal),*) => {
        impl<F, R, $($param),*> NativeFn<Plain<($($param,)*)>> for F
        where
            F: Fn($($param),*) -> R,
            R: IntoResult,
            $($param: Param,)*
        {
            fn arity() -> Arity {
                arity(&[$(($param::IS_OPTIONAL, $param::IS_REST)),*])
            }

            fn call(&self, vm: &mut Vm, mut args: Args<'_>) -> Result<Value> {
                let _ = (&vm, &mut args);
                self($($param::take(vm, &mut args, $idx)?),*).into_result()
            }
        }

        impl<F, R, $($param),*> NativeFn<WithVm<($($param,)*)>> for F
        where
            F: Fn(&mut Vm, $($param),*) -> R,
            R: IntoResult,
            $($param: Param,)*
        {
            fn arity() -> Arity {
                arity(&[$(($param::IS_OPTIONAL, $param::IS_REST)),*])
            }

            fn call(&self, vm: &mut Vm, mut args: Args<'_>) -> Result<Value> {
                let _ = &mut args;
                $(let $name = <$param as Param>::take(vm, &mut args, $idx)?;)*
                self(vm, $($name),*).into_result()
            }
        }
    };
}

native_fn!();
native_fn!(A a 0);
native_fn!(A a 0, B b 1);
native_fn!(A a 0, B b 1, C c 2);
native_fn!(A a 0, B b 1, C c 2, D d 3);
native_fn!(A a 0, B b 1, C c 2, D d 3, E e 4);
native_fn!(A a 0, B b 1, C c 2, D d 3, E e 4, G g 5);

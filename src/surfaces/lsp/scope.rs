//! The names that a text binds and defines, found in its syntax tree: locals with their scopes, top-level definitions,
//! and the aliases of namespaces. Macros of the program are not expanded, so a name that they bind is not known here.

use std::collections::BTreeMap;
use std::ops::Range;

use flowstone_flow::natives::USUAL_ALIASES;
use flowstone_lang::syntax::{NodeId, NodeKind, Tree};

/// Forms with a vector of names and values, then a body.
const LETS: &[&str] = &[
    "let",
    "let*",
    "loop",
    "loop*",
    "for",
    "doseq",
    "dotimes",
    "with-open",
    "when-let",
    "when-some",
    "when-first",
    "if-let",
    "if-some",
    "flow/let",
];

/// Forms whose lists are methods.
const METHODS: &[&str] = &[
    "defrecord",
    "deftype",
    "extend-protocol",
    "extend-type",
    "proxy",
    "reify",
];

/// A local name.
#[derive(Debug, Clone)]
pub(super) struct Local {
    pub(super) name: String,
    /// The token that binds it.
    pub(super) token: NodeId,
    /// Where it can be used.
    pub(super) scope: Range<usize>,
    /// Whether the token is also the key that the value is taken from, as in `{:keys [name]}`.
    pub(super) is_key: bool,
}

/// A top-level definition.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) token: NodeId,
    /// The whole form.
    pub(super) form: NodeId,
}

/// Everything that a text binds and defines.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    pub(super) locals: Vec<Local>,
    pub(super) definitions: Vec<Definition>,
    pub(super) aliases: BTreeMap<String, String>,
    /// Names that are referred from another namespace, with that namespace.
    pub(super) referred: BTreeMap<String, String>,
    /// The namespace that the text declares.
    pub(super) namespace: Option<String>,
}

impl Scopes {
    pub(super) fn of(text: &str, tree: &Tree) -> Scopes {
        let usual = USUAL_ALIASES.iter();
        let mut finder = Finder {
            text,
            tree,
            found: Scopes {
                aliases: usual
                    .map(|(alias, name)| ((*alias).to_owned(), (*name).to_owned()))
                    .collect(),
                ..Scopes::default()
            },
        };
        for (id, node) in tree.all() {
            if node.kind == NodeKind::List {
                finder.list(id);
            }
        }
        finder.found
    }

    /// Returns the local that a token binds or refers to.
    pub(super) fn local(&self, token: NodeId, name: &str, offset: usize) -> Option<&Local> {
        let own = self.locals.iter().find(|local| local.token == token);
        own.or_else(|| self.visible(offset).find(|local| local.name == name))
    }

    /// Returns the locals that can be used at an offset, innermost first.
    pub(super) fn visible(&self, offset: usize) -> impl Iterator<Item = &Local> {
        let mut found: Vec<&Local> = self
            .locals
            .iter()
            .filter(|local| local.scope.contains(&offset))
            .collect();
        found.sort_by_key(|local| std::cmp::Reverse((local.scope.start, local.token)));
        found.into_iter()
    }

    /// Returns the definition of a name.
    pub(super) fn definition(&self, name: &str) -> Option<&Definition> {
        self.definitions.iter().find(|found| found.name == name)
    }

    /// Returns the full name of a name that is neither local nor defined here, as the text's aliases make it.
    pub(super) fn qualified(&self, name: &str) -> String {
        match name.split_once('/') {
            Some((prefix, plain)) if !prefix.is_empty() && !plain.is_empty() => {
                match self.aliases.get(prefix) {
                    Some(namespace) => format!("{namespace}/{plain}"),
                    None => name.to_owned(),
                }
            }
            _ => match self.referred.get(name) {
                Some(namespace) => format!("{namespace}/{name}"),
                None => name.to_owned(),
            },
        }
    }
}

struct Finder<'t> {
    text: &'t str,
    tree: &'t Tree,
    found: Scopes,
}

impl Finder<'_> {
    fn list(&mut self, list: NodeId) {
        let Some(head) = self.tree.head(self.text, list) else {
            return;
        };
        let plain = match head.rsplit_once('/') {
            Some(("clojure.core" | "clojure.test", plain)) => plain,
            _ => head,
        };
        let forms: Vec<NodeId> = self.tree.forms(Some(list)).collect();
        let end = self.end(list);
        if LETS.contains(&plain) {
            let end = match (plain, forms.get(2)) {
                // The name is not bound in the second branch.
                ("if-let" | "if-some", Some(branch)) => self.tree.node(*branch).end as usize,
                _ => end,
            };
            if let Some(vector) = forms.get(1) {
                self.pairs(*vector, end);
            }
        }
        match plain {
            "as->" => self.name(forms.get(2), end),
            "catch" => self.name(forms.get(2), end),
            "fn" | "fn*" | "bound-fn" => {
                if let Some(name) = forms.get(1).filter(|id| self.is_symbol(**id)) {
                    self.name(Some(name), end);
                }
                self.functions(&forms[1..], end);
            }
            "letfn" => self.local_functions(&forms, end),
            "ns" => self.namespace(&forms),
            "require" => forms.iter().skip(1).for_each(|form| self.required(*form)),
            _ if METHODS.contains(&plain) => self.methods(plain, &forms, end),
            _ => {}
        }
        if plain.starts_with("def") && forms.len() > 1 {
            self.define(plain, list, &forms);
        }
    }

    fn define(&mut self, head: &str, list: NodeId, forms: &[NodeId]) {
        let token = self.tree.bare(forms[1]);
        if !self.is_symbol(token) {
            return;
        }
        if head != "defmethod" {
            let name = self.tree.text(self.text, token).to_owned();
            self.found.definitions.push(Definition {
                name,
                token,
                form: list,
            });
        }
        if matches!(head, "defn" | "defn-" | "defmacro" | "defmethod") {
            self.functions(&forms[2..], self.end(list));
        }
        if head == "defprotocol" {
            for method in forms.iter().skip(2) {
                let name = self.tree.form(*method, 0).filter(|id| self.is_symbol(*id));
                if let Some(token) = name {
                    self.found.definitions.push(Definition {
                        name: self.tree.text(self.text, token).to_owned(),
                        token,
                        form: *method,
                    });
                }
            }
        }
    }

    /// Finds the parameters of a function: of its one vector, or of each list that begins with one.
    fn functions(&mut self, forms: &[NodeId], end: usize) {
        for form in forms {
            let form = self.tree.bare(*form);
            match self.tree.node(form).kind {
                NodeKind::Vector => {
                    let start = self.tree.node(form).start as usize;
                    self.pattern(form, start..end);
                    return;
                }
                NodeKind::List => self.arity(form),
                _ => {}
            }
        }
    }

    fn arity(&mut self, list: NodeId) {
        let vector = self
            .tree
            .forms(Some(list))
            .map(|id| self.tree.bare(id))
            .find(|id| self.is_vector(*id));
        if let Some(vector) = vector {
            let range = self.tree.node(vector).start as usize..self.end(list);
            self.pattern(vector, range);
        }
    }

    fn local_functions(&mut self, forms: &[NodeId], end: usize) {
        let Some(vector) = forms.get(1).copied() else {
            return;
        };
        let start = self.tree.node(vector).start as usize;
        let functions: Vec<NodeId> = self.tree.forms(Some(vector)).collect();
        for function in functions {
            if let Some(name) = self.tree.form(function, 0) {
                self.bind(name, start..end, false);
            }
            self.arity(function);
        }
    }

    fn methods(&mut self, head: &str, forms: &[NodeId], end: usize) {
        if matches!(head, "defrecord" | "deftype")
            && let Some(fields) = forms.get(2)
        {
            let start = self.tree.node(*fields).start as usize;
            self.pattern(*fields, start..end);
        }
        for method in forms.iter().skip(1) {
            if self.tree.node(*method).kind == NodeKind::List {
                self.arity(*method);
            }
        }
    }

    /// Finds the names of a vector of patterns and values. Each can be used behind its value.
    fn pairs(&mut self, vector: NodeId, end: usize) {
        let mut open = vec![self.tree.bare(vector)];
        while let Some(vector) = open.pop() {
            if !self.is_vector(vector) {
                continue;
            }
            let forms: Vec<NodeId> = self.tree.forms(Some(vector)).collect();
            for pair in forms.chunks(2) {
                let value_end = self.tree.node(*pair.last().unwrap_or(&vector)).end as usize;
                match self.tree.node(pair[0]).kind {
                    // `:let [...]` of `for` and `doseq`; `:when` and `:while` bind nothing.
                    NodeKind::Keyword if self.tree.text(self.text, pair[0]) == ":let" => {
                        open.extend(pair.get(1))
                    }
                    NodeKind::Keyword => {}
                    _ => self.pattern(pair[0], value_end..end),
                }
            }
        }
    }

    /// Binds the names of a destructuring pattern.
    fn pattern(&mut self, pattern: NodeId, scope: Range<usize>) {
        let mut open = vec![pattern];
        while let Some(id) = open.pop() {
            let id = self.tree.bare(id);
            match self.tree.node(id).kind {
                NodeKind::Symbol => self.bind(id, scope.clone(), false),
                NodeKind::Vector => {
                    let forms = self.tree.forms(Some(id));
                    open.extend(forms.filter(|id| self.tree.node(*id).kind != NodeKind::Keyword));
                }
                NodeKind::Map => {
                    let forms: Vec<NodeId> = self.tree.forms(Some(id)).collect();
                    for pair in forms.chunks(2) {
                        self.map_pattern(pair, &scope, &mut open);
                    }
                }
                _ => {}
            }
        }
    }

    fn map_pattern(&mut self, pair: &[NodeId], scope: &Range<usize>, open: &mut Vec<NodeId>) {
        let [key, value] = *pair else {
            return;
        };
        if self.tree.node(key).kind != NodeKind::Keyword {
            open.push(key);
            return;
        }
        let name = self.tree.text(self.text, key);
        let plain = name
            .rsplit(['/', ':'])
            .next()
            .unwrap_or_default()
            .trim_end_matches('!');
        match plain {
            "keys" | "strs" | "syms" => {
                let names: Vec<NodeId> = self.tree.forms(Some(value)).collect();
                names
                    .into_iter()
                    .for_each(|name| self.bind(name, scope.clone(), true));
            }
            "as" => open.push(value),
            // The defaults of `:or` have their names already.
            _ => {}
        }
    }

    fn name(&mut self, token: Option<&NodeId>, end: usize) {
        if let Some(token) = token {
            let start = self.tree.node(*token).end as usize;
            self.bind(*token, start..end, false);
        }
    }

    fn bind(&mut self, token: NodeId, scope: Range<usize>, is_key: bool) {
        let text = self.tree.text(self.text, token);
        let name = match self.tree.node(token).kind {
            NodeKind::Symbol if text != "&" => text,
            NodeKind::Keyword if is_key => text.trim_start_matches(':'),
            _ => return,
        };
        let name = match is_key {
            true => name.rsplit('/').next().unwrap_or(name),
            false => name,
        };
        self.found.locals.push(Local {
            name: name.to_owned(),
            token,
            scope,
            is_key,
        });
    }

    fn namespace(&mut self, forms: &[NodeId]) {
        let name = forms.get(1).map(|id| self.tree.bare(*id));
        self.found.namespace = name.map(|name| self.tree.text(self.text, name).to_owned());
        for clause in forms.iter().skip(2) {
            let mut parts = self.tree.forms(Some(*clause));
            let head = parts.next().map(|head| self.tree.text(self.text, head));
            if matches!(head, Some(":require" | ":use")) {
                let specs: Vec<NodeId> = parts.collect();
                specs.into_iter().for_each(|spec| self.required(spec));
            }
        }
    }

    /// Takes the alias and the referred names of `[name :as alias :refer [a b]]`, quoted or not.
    fn required(&mut self, spec: NodeId) {
        let spec = self.tree.bare(spec);
        if !self.is_vector(spec) {
            return;
        }
        let forms: Vec<NodeId> = self.tree.forms(Some(spec)).collect();
        let Some((name, options)) = forms.split_first() else {
            return;
        };
        let namespace = self.tree.text(self.text, *name).to_owned();
        for option in options.chunks(2) {
            let [key, value] = *option else {
                return;
            };
            match self.tree.text(self.text, key) {
                ":as" | ":as-alias" => {
                    let alias = self.tree.text(self.text, value).to_owned();
                    self.found.aliases.insert(alias, namespace.clone());
                }
                ":refer" => {
                    for name in self.tree.forms(Some(value)) {
                        let name = self.tree.text(self.text, name).to_owned();
                        self.found.referred.insert(name, namespace.clone());
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the end of the names of a list. One that is not closed has the end of the text inside.
    fn end(&self, list: NodeId) -> usize {
        let node = self.tree.node(list);
        node.end as usize + usize::from(!node.is_closed)
    }

    fn is_symbol(&self, id: NodeId) -> bool {
        self.tree.node(id).kind == NodeKind::Symbol
    }

    fn is_vector(&self, id: NodeId) -> bool {
        self.tree.node(id).kind == NodeKind::Vector
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names that are visible at the `|` in a text.
    fn visible(marked: &str) -> String {
        let offset = marked.find('|').expect("a mark");
        let text = marked.replace('|', "");
        let scopes = Scopes::of(&text, &Tree::parse(&text));
        let names: Vec<&str> = scopes.visible(offset).map(|local| &*local.name).collect();
        names.join(" ")
    }

    #[test]
    fn let_binds_behind_each_value() {
        assert_eq!(visible("(let [a 1 b (f |)] b)"), "a");
        assert_eq!(visible("(let [a 1 b 2] |)"), "b a");
        assert_eq!(visible("(let [a 1] a) |"), "");
        assert_eq!(visible("(if-let [a 1] | 2)"), "a");
        assert_eq!(visible("(if-let [a 1] 2 |)"), "");
        assert_eq!(visible("(for [a [1] :let [b a] :when |] a)"), "b a");
    }

    #[test]
    fn patterns_bind_all_their_names() {
        assert_eq!(visible("(let [[a & more :as all] x] |)"), "all more a");
        assert_eq!(
            visible("(let [{:keys [a b/c] d :d :or {a 1} :as m} x] |)"),
            "m d c a"
        );
        assert_eq!(visible("(fn [{:strs [s] [x] :v}] |)"), "x s");
    }

    #[test]
    fn functions_bind_their_parameters() {
        assert_eq!(visible("(defn f \"doc\" [a] |)"), "a");
        assert_eq!(visible("(defn f ([a] a) ([b c] |))"), "c b");
        assert_eq!(visible("(fn g [x] |)"), "x g");
        assert_eq!(visible("(letfn [(f [x] |)] 1)"), "x f");
        assert_eq!(visible("(reify P (m [this] |))"), "this");
        assert_eq!(visible("(try 1 (catch Exception e |))"), "e");
        assert_eq!(visible("'(let [a 1] |"), "a");
    }

    #[test]
    fn aliases_and_definitions_are_found() {
        let text = "(ns a.b (:require [c.d :as e :refer [f]]))\n(def x 1)\n(require '[g.h :as i])";
        let scopes = Scopes::of(text, &Tree::parse(text));
        assert_eq!(scopes.qualified("e/z"), "c.d/z");
        assert_eq!(scopes.qualified("i/z"), "g.h/z");
        assert_eq!(scopes.qualified("f"), "c.d/f");
        assert_eq!(scopes.qualified("str/join"), "clojure.string/join");
        assert_eq!(scopes.namespace.as_deref(), Some("a.b"));
        assert!(scopes.definition("x").is_some());
    }
}

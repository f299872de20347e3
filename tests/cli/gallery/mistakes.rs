//! The table of mistakes.

use super::{Mistake, Section};

pub(super) const SECTIONS: &[Section] = &[
    Section {
        title: "Reading",
        mistakes: READING,
    },
    Section {
        title: "Names",
        mistakes: NAMES,
    },
    Section {
        title: "The shape of forms",
        mistakes: SHAPES,
    },
    Section {
        title: "Macros",
        mistakes: MACROS,
    },
    Section {
        title: "Values of the wrong kind",
        mistakes: KINDS,
    },
    Section {
        title: "Calls",
        mistakes: CALLS,
    },
    Section {
        title: "Collections and sequences",
        mistakes: COLLECTIONS,
    },
    Section {
        title: "Numbers and texts",
        mistakes: NUMBERS,
    },
    Section {
        title: "Patterns",
        mistakes: PATTERNS,
    },
    Section {
        title: "Types, methods, state",
        mistakes: TYPES,
    },
    Section {
        title: "Namespaces",
        mistakes: NAMESPACES,
    },
    Section {
        title: "What programs throw, and what never ends",
        mistakes: THROWN,
    },
];

const READING: &[Mistake] = &[
    Mistake::new(
        "A parenthesis is missing",
        "(defn total [items]\n  (reduce + (map :price items))\n\n(println (total [{:price 3}]))\n",
        "The text ends inside a form. The first place is where that form was opened.",
    ),
    Mistake::new(
        "A bracket is closed with the wrong delimiter",
        "(let [x [1 2 3)]\n  x)",
        "Both delimiters are shown: the one that was found, and the one that it would have to close.",
    ),
    Mistake::new(
        "An extra parenthesis",
        "(defn f [x] (inc x)))",
        "The last parenthesis closes nothing: every form before it is closed already.",
    ),
    Mistake::new(
        "A string without its end",
        "(println \"hello)\n(println \"again\")",
        "The last quote begins another string, which has no end.",
    ),
    Mistake::new(
        "A backslash in a string",
        "(println \"C:\\Users\")",
        "A backslash begins an escape sequence, and this one does not exist.",
    ),
    Mistake::new(
        "A number with letters",
        "(+ 1 12px)",
        "A token that begins with a digit must be a number to its end.",
    ),
    Mistake::new(
        "A character that does not exist",
        "(println \\newlin)",
        "Only a few characters have names.",
    ),
    Mistake::new(
        "A key without a value",
        "{:name \"Ann\" :age}",
        "A map literal consists of pairs of a key and a value.",
    ),
    Mistake::new(
        "A duplicate key",
        "{:id 1 :name \"x\" :id 2}",
        "One of the two entries would be lost silently.",
    ),
    Mistake::new(
        "An unknown tag",
        "(def p #point [1 2])",
        "In code, a tagged form needs a reader for its tag.",
    ),
    Mistake::new(
        "An invalid regex",
        "(re-find #\"(abc\" \"abc\")",
        "A regex literal is compiled when it is read.",
    ),
];

const NAMES: &[Mistake] = &[
    Mistake::new(
        "A misspelt local",
        "(defn area [width height]\n  (* widht height))",
        "Names are resolved before anything runs; the hint prefers the names of locals.",
    ),
    Mistake::new(
        "A misspelt function",
        "(println (fitler even? [1 2 3]))",
        "The hint suggests the nearest names of the namespace and the core library.",
    ),
    Mistake::new(
        "A function of another namespace",
        "(println (union #{1} #{2}))",
        "The library has a function of this name, in a namespace that is not required.",
    ),
    Mistake::new(
        "A namespace that was not required",
        "(str/upper-case \"a\")",
        "The alias does not exist; the hint names the library namespace that commonly has this alias.",
    ),
    Mistake::new(
        "A misspelt name of a namespace",
        "(require '[clojure.string :as str])\n(str/uper-case \"a\")",
        "The namespace exists, but the name is not in it.",
    ),
    Mistake::new(
        "A method that a class does not have",
        "(Math/sqr 16)",
        "A host name exists only if the library has a function for it.",
    ),
    Mistake::new(
        "A macro as a value",
        "(reduce and [true false])",
        "A macro works on forms before the program runs, so it is not a value that can be passed.",
    ),
    Mistake::new(
        "A private function",
        "(ns lib)\n(defn- secret [] 42)\n\n(ns app)\n(lib/secret)",
        "A function that `defn-` defines is private to its namespace.",
    ),
];

const SHAPES: &[Mistake] = &[
    Mistake::new(
        "A local without a value",
        "(let [x 1 y] (+ x y))",
        "Bindings are pairs of a name and a value.",
    ),
    Mistake::new(
        "Bindings in parentheses",
        "(let (x 1)\n  (inc x))",
        "Other Lisps write bindings in parentheses; here they are in a vector.",
    ),
    Mistake::new(
        "A function without parameters",
        "(defn greet\n  (println \"hello\"))",
        "A function without parameters has a parameter vector too: `[]`.",
    ),
    Mistake::new(
        "Too many branches",
        "(if true\n  (println \"yes\")\n  (println \"no\")\n  (println \"maybe\"))",
        "`if` takes one form for each case; `do` groups several forms into one.",
    ),
    Mistake::new(
        "A test without an expression",
        "(defn sign [n]\n  (cond\n    (pos? n) 1\n    (neg? n) -1\n    0))",
        "`cond` takes pairs: the default needs a test too.",
    ),
    Mistake::new(
        "The same constant twice",
        "(case 3\n  1 :one\n  2 :two\n  1 :uno)",
        "The second branch could never be taken.",
    ),
    Mistake::new(
        "An unknown modifier of for",
        "(for [x (range 10)\n      :wen (even? x)]\n  x)",
        "`for` accepts only these three keywords among its bindings.",
    ),
    Mistake::new(
        "recur with work left to do",
        "(defn factorial [n]\n  (if (zero? n)\n    1\n    (* n (recur (dec n)))))",
        "`recur` is a jump, so the multiplication would never happen.",
    ),
    Mistake::new(
        "recur with too few values",
        "(loop [i 0 acc []]\n  (if (< i 3)\n    (recur (inc i))\n    acc))",
        "`recur` needs a new value for every name of the loop.",
    ),
    Mistake::new(
        "recur out of a try",
        "(loop [n 3]\n  (try\n    (recur (dec n))\n    (catch Exception e n)))",
        "A `recur` inside the `try` would leave a `try` open for each round.",
    ),
    Mistake::new(
        "A catch without a class",
        "(try\n  (/ 1 0)\n  (catch e\n    (println \"no\")))",
        "The class comes before the name.",
    ),
    Mistake::new(
        "An unquote outside of a template",
        "(defn f [x]\n  ~x)",
        "`~` has a meaning only inside a form that is quoted with a backquote.",
    ),
];

const MACROS: &[Mistake] = &[
    Mistake::new(
        "A macro with the wrong number of forms",
        "(defmacro unless [test form]\n  `(if ~test nil ~form))\n\n(unless false 1 2)",
        "The count is of the forms as they are written in the call.",
    ),
    Mistake::new(
        "A mistake in a macro's expansion",
        "(defmacro twice [x]\n  `(let [y# ~x z#]\n     (+ y# y#)))\n\n(defn f []\n  (twice 3))",
        "The place is in the text of the macro; the message also shows the call that was expanded.",
    ),
    Mistake::new(
        "A run-time error in a macro's expansion",
        "(defmacro add-tax [price]\n  `(* ~price \"1.2\"))\n\n(defn total [price]\n  (add-tax price))\n\n(total 10)",
        "The error happens at run time, and the message still shows the macro's expansion.",
    ),
    Mistake::new(
        "A macro that fails itself",
        "(defmacro field [name]\n  `(get ~(symbol (str \"row\")) ~(keyword (subs name 1))))\n\n(field :price)",
        "A macro is a function of forms; this one expected a string.",
    ),
];

const KINDS: &[Mistake] = &[
    Mistake::new(
        "Arithmetic on a keyword",
        "(+ 1 :a)",
        "The caret points at the argument, and the message shows its value and kind.",
    ),
    Mistake::new(
        "The third of four arguments",
        "(+ 1 2 \"3\" 4)",
        "Arguments are counted as they are written in the call.",
    ),
    Mistake::new(
        "A key that is not there",
        "(def order {:price 3})\n\n(defn total [order]\n  (+ (:price order) (:tax order)))\n\n(println (total order))",
        "A lookup without a result returns nil, and the error appears later, where a number is needed.",
    ),
    Mistake::new(
        "nil inside of update",
        "(update {:visits nil} :visits inc)",
        "Another function made the call; the place is the call in the program.",
    ),
    Mistake::new(
        "Sorting items of different kinds",
        "(sort [3 \"2\" 1])",
        "There is no order between a number and a string.",
    ),
    Mistake::new(
        "A lazy element that fails later",
        "(defn parse [text]\n  (+ 0 text))\n\n(defn prices [rows]\n  (map parse rows))\n\n(def all (prices [1 2 \"3\"]))\n\n(println (reduce + all))",
        "The sequence was made in one place and computed in another; both are shown.",
    ),
    Mistake::new(
        "An endless sequence where a map is needed",
        "(assoc (range) :a 1)",
        "Only the beginning of an infinite value is printed.",
    ),
];

const CALLS: &[Mistake] = &[
    Mistake::new(
        "Too few arguments",
        "(defn add [a b]\n  (+ a b))\n\n(println (add 1))",
        "Calls of known functions are counted before the program runs.",
    ),
    Mistake::new(
        "Too many arguments of a function of the core",
        "(filter even? [1 2] [3 4])",
        "The hint lists every way to call the function.",
    ),
    Mistake::new(
        "Too many arguments of a function of the program",
        "(defn add [a b]\n  (+ a b))\n\n(println (apply add [1 2 3]))",
        "Here the number of arguments is not known until the program runs.",
    ),
    Mistake::new(
        "Calling nil",
        "(def handlers {:get identity})\n\n((:post handlers) {:id 1})",
        "The form in function position is at fault, not the arguments.",
    ),
    Mistake::new(
        "Parentheses around a value",
        "(defn status [ok?]\n  (if ok? (\"fine\") (\"broken\")))\n\n(println (status true))",
        "Parentheses call the first form inside them.",
    ),
    Mistake::new(
        "The result of println, called",
        "(defn run []\n  ((println \"working\")))\n\n(run)",
        "Two parentheses call twice.",
    ),
];

const COLLECTIONS: &[Mistake] = &[
    Mistake::new(
        "An index that is too large",
        "(nth [:a :b :c] 3)",
        "Positions are counted from 0.",
    ),
    Mistake::new(
        "assoc past the end of a vector",
        "(assoc [1 2] 5 :x)",
        "`assoc` may replace an item, or add one at the end.",
    ),
    Mistake::new(
        "A path through a string",
        "(assoc-in {:user \"ann\"} [:user :name] \"Ann\")",
        "The path leads through a value that has no keys.",
    ),
    Mistake::new(
        "keys of a vector",
        "(keys [1 2 3])",
        "A vector has positions, not keys.",
    ),
    Mistake::new(
        "A single number in a map",
        "(conj {:a 1} 3)",
        "Only an entry can be added to a map.",
    ),
    Mistake::new(
        "Arguments in the wrong order",
        "(->> [1 2 3]\n     (map inc)\n     (nth 1))",
        "`nth` takes the collection first, and `->>` puts it last.",
    ),
    Mistake::new(
        "A number instead of a sequence",
        "(reduce + 42)",
        "The hint says which argument is the collection.",
    ),
    Mistake::new(
        "A transient that was given back",
        "(def t (transient []))\n(def v (persistent! t))\n(conj! t 1)",
        "After `persistent!` the transient can no longer be used.",
    ),
];

const NUMBERS: &[Mistake] = &[
    Mistake::new(
        "Division by zero",
        "(defn average [xs]\n  (/ (reduce + xs) (count xs)))\n\n(println (average []))",
        "The caret points at the divisor and shows its value.",
    ),
    Mistake::new(
        "A number that grows too large",
        "(reduce * (range 1 30))",
        "Integers have 64 bits; a larger result is an error.",
    ),
    Mistake::new(
        "Text that is not a number",
        "(Long/parseLong \"12a\")",
        "The core functions return nil instead of failing.",
    ),
    Mistake::new(
        "A position outside of a string",
        "(subs \"hello\" 3 10)",
        "The end must not exceed the length.",
    ),
    Mistake::new(
        "A directive that does not fit",
        "(format \"%d items\" \"three\")",
        "The message names both the directive and the value.",
    ),
    Mistake::new(
        "A string instead of a regex",
        "(require '[clojure.string :as str])\n(str/split \"a,b\" \",\")",
        "`split` takes a regex.",
    ),
];

const PATTERNS: &[Mistake] = &[
    Mistake::new(
        "A vector pattern and a number",
        "(defn start [[x y]]\n  x)\n\n(start 3)",
        "The pattern does not fit; the message shows it with the value that it got.",
    ),
    Mistake::new(
        "A required key that is missing",
        "(defn charge [{:keys! [amount currency]}]\n  [amount currency])\n\n(charge {:amount 3})",
        "Every name in `:keys!` must be present; the message names the first missing one.",
    ),
    Mistake::new(
        "Two names after &",
        "(let [[a & b c] [1 2 3]]\n  c)",
        "`&` takes all remaining items, so it takes one name.",
    ),
    Mistake::new(
        "A keyword as a name",
        "(let [:total 3]\n  total)",
        "Only names and patterns can be bound.",
    ),
];

const TYPES: &[Mistake] = &[
    Mistake::new(
        "A multimethod without the method",
        "(defmulti area :shape)\n(defmethod area :circle [{:keys [r]}]\n  (* 3 r r))\n\n(area {:shape :square :side 2})",
        "The message shows the dispatch value.",
    ),
    Mistake::new(
        "A protocol that a type does not implement",
        "(defprotocol Shape\n  (area [this]))\n\n(area {:side 2})",
        "The type of the argument does not implement this method.",
    ),
    Mistake::new(
        "A method that a protocol does not have",
        "(defprotocol Shape\n  (area [this]))\n\n(defrecord Square [side]\n  Shape\n  (aera [this] (* side side)))",
        "The methods of a record are compared with the protocol when the record is defined.",
    ),
    Mistake::new(
        "swap! on something that is not an atom",
        "(def counter 0)\n\n(swap! counter inc)",
        "A var holds a value; `swap!` changes an atom.",
    ),
    Mistake::new(
        "Binding a var that is not dynamic",
        "(def limit 10)\n\n(binding [limit 20]\n  limit)",
        "Only vars marked as dynamic can be bound.",
    ),
    Mistake::new(
        "An agent",
        "(def log (agent []))",
        "Some features of Clojure do not exist here; the hint says what to use instead.",
    ),
];

const NAMESPACES: &[Mistake] = &[
    Mistake::new(
        "A namespace that cannot be found",
        "(ns app\n  (:require [my.missing :as missing]))",
        "The place is the name inside the `ns` form.",
    ),
    Mistake::new(
        "A name that the namespace does not have",
        "(ns app\n  (:require [clojure.string :refer [capitalise]]))",
        "The message shows the requested name, and the hint the one that exists.",
    ),
    Mistake::new(
        "A misspelt option",
        "(ns app\n  (:require [clojure.string :az str]))",
        "An unknown option is an error; none is ignored silently.",
    ),
    Mistake {
        title: "Two namespaces that need one another",
        source: "(require 'shop.orders)",
        why: "The message shows the whole cycle.",
        files: &[
            (
                "src/shop/orders.clj",
                "(ns shop.orders\n  (:require [shop.customers]))\n",
            ),
            (
                "src/shop/customers.clj",
                "(ns shop.customers\n  (:require [shop.orders]))\n",
            ),
        ],
        args: &["--path", "src"],
    },
];

const THROWN: &[Mistake] = &[
    Mistake::new(
        "An exception with data",
        "(defn withdraw [account amount]\n  (when (> amount (:balance account))\n    (throw (ex-info \"Not enough money\" {:missing (- amount (:balance account))})))\n  (update account :balance - amount))\n\n(withdraw {:balance 10} 30)",
        "An exception that the program throws itself has no error code; the message shows its data.",
    ),
    Mistake::new(
        "An exception and its cause",
        "(defn read-config []\n  (throw (ex-info \"no such file\" {:path \"a.edn\"})))\n\n(defn start []\n  (try\n    (read-config)\n    (catch Exception e\n      (throw (ex-info \"cannot start\" {:stage :config} e)))))\n\n(start)",
        "Each cause is shown with its class, place and data.",
    ),
    Mistake::new(
        "Throwing a string",
        "(defn check [x]\n  (when (neg? x)\n    (throw \"negative\")))\n\n(check -1)",
        "Only exceptions can be thrown.",
    ),
    Mistake::new(
        "A function that never stops calling itself",
        "(defn depth [n]\n  (inc (depth n)))\n\n(depth 1)",
        "A call that repeats itself is shown once.",
    ),
    Mistake {
        title: "A loop that never ends",
        source: "(loop [n 0]\n  (recur (inc n)))",
        why: "`--fuel` or `--deadline` stops a program; the message shows where it was.",
        files: &[],
        args: &["--fuel", "100000"],
    },
];

(ns Compiler
  "`clojure.lang.Compiler/...`: tables that programs read.")

(def CHAR_MAP
  "The replacements of symbol characters in names of the host."
  {\- "_" \: "_COLON_" \+ "_PLUS_" \> "_GT_" \< "_LT_" \= "_EQ_" \~ "_TILDE_" \! "_BANG_" \@ "_CIRCA_"
   \# "_SHARP_" \' "_SINGLEQUOTE_" \" "_DOUBLEQUOTE_" \% "_PERCENT_" \^ "_CARET_" \& "_AMPERSAND_"
   \* "_STAR_" \| "_BAR_" \{ "_LBRACE_" \} "_RBRACE_" \[ "_LBRACK_" \] "_RBRACK_" \/ "_SLASH_"
   \\ "_BSLASH_" \? "_QMARK_"})

(defn demunge
  "Returns the name of a function in the language from its class name."
  {:examples '[[(clojure.lang.Compiler/demunge "a.b$c_QMARK_") "a.b/c?"]]}
  [s]
  (let [chars (into {} (map (fn [[c text]] [text (str c)]) (dissoc CHAR_MAP \-)))
        found (re-pattern (str (clojure.string/join "|" (keys chars)) "|_|\\$"))]
    (clojure.string/replace s found (fn [text] (get chars text (if (= "$" text) "/" "-"))))))

(defn munge
  "Returns the host's form of a name in the language."
  {:examples '[[(clojure.lang.Compiler/munge "c?") "c_QMARK_"]]}
  [s]
  (clojure.core/munge s))

(def specials
  "The special forms, as the keys of a map."
  (zipmap '[& . case* catch clojure.core/import* def deftype* do finally fn* if let* letfn* loop* monitor-enter
            monitor-exit new quote recur reify* set! throw try var]
          (repeat nil)))

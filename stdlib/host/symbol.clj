(ns Symbol
  "`clojure.lang.Symbol/...`: symbols from text.")

(defn intern
  "Returns the symbol of a name, with a namespace if one is given."
  {:examples '[[(clojure.lang.Symbol/intern "a") a]]}
  ([x] (symbol x))
  ([ns-name x] (symbol ns-name x)))

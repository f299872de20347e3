(ns Keyword
  "`clojure.lang.Keyword/...`: keywords from text.")

(defn intern
  "Returns the keyword of a name, with a namespace if one is given."
  {:examples '[[(clojure.lang.Keyword/intern "a") :a]]}
  ([x] (keyword x))
  ([ns-name x] (keyword ns-name x)))

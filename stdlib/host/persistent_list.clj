(ns PersistentList
  "`clojure.lang.PersistentList/...`: lists from other collections.")

(defn create
  "Returns a list of the items of a collection."
  {:examples '[[(clojure.lang.PersistentList/create [1 2]) (1 2)]]}
  [items]
  (apply list items))

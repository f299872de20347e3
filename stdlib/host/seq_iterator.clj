(ns SeqIterator
  "`clojure.lang.SeqIterator`: iterators over sequences.")

(deftype ^{:package "clojure.lang"} SeqIterator [^:unsynchronized-mutable items]
  java.util.Iterator
  (hasMoreElements [this] (some? (seq items)))
  (hasNext [this] (some? (seq items)))
  (next [this]
    (if (seq items)
      (let [item (first items)]
        (set! items (rest items))
        item)
      (throw (java.util.NoSuchElementException.))))
  (nextElement [this] (.next this))
  (seq [this] (seq items)))

(defn new
  "Returns an iterator over a sequence."
  {:examples '[[(.next (clojure.lang.SeqIterator. [1 2])) 1]]}
  [items]
  (->SeqIterator items))

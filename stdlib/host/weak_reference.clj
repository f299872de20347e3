(ns WeakReference
  "`java.lang.ref.WeakReference`: references to a value, which lives as long as they do.")

(deftype ^{:package "java.lang.ref"} WeakReference [^:unsynchronized-mutable value]
  java.lang.Object
  (clear [this] (set! value nil) nil)
  (get [this] value))

(defn new
  "Returns a reference to a value."
  {:examples '[[(.get (java.lang.ref.WeakReference. 1)) 1]]}
  ([value] (->WeakReference value))
  ([value _queue] (->WeakReference value)))

(ns SoftReference
  "`java.lang.ref.SoftReference`: references to a value, which lives as long as they do.")

(deftype ^{:package "java.lang.ref"} SoftReference [^:unsynchronized-mutable value]
  java.lang.Object
  (clear [this] (set! value nil) nil)
  (get [this] value))

(defn new
  "Returns a reference to a value."
  {:examples '[[(.get (java.lang.ref.SoftReference. 1)) 1]]}
  ([value] (->SoftReference value))
  ([value _queue] (->SoftReference value)))

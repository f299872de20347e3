(ns ThreadLocal
  "`java.lang.ThreadLocal`: a value for each thread, of which there is one.")

(deftype ^{:package "java.lang"} ThreadLocal [make ^:unsynchronized-mutable held]
  java.lang.Object
  (get [this]
    (when (nil? held) (set! held [(make)]))
    (first held))
  (remove [this] (set! held nil) nil)
  (set [this x] (set! held [x]) nil))

(defn new
  "Returns a holder of a value for this thread, nil at first."
  {:examples '[[(.get (doto (ThreadLocal.) (.set 1))) 1]]}
  []
  (->ThreadLocal (constantly nil) nil))

(defn withInitial
  "Returns a holder of a value for this thread, which a function computes."
  {:examples '[[(.get (ThreadLocal/withInitial (fn [] 1))) 1]]}
  [make]
  (->ThreadLocal make nil))

(ns System
  "`System/...`: functions that do not depend on the machine.")

(def ^:private properties
  "The properties that are the same everywhere."
  {"file.encoding" "UTF-8"
   "file.separator" "/"
   "line.separator" "\n"
   "path.separator" ":"})

(defn arraycopy
  "Copies items of an array into another, or within it."
  {:examples '[[(let [a (int-array [1 2 3])] (System/arraycopy a 0 a 1 2) (vec a)) [1 1 2]]]}
  [from start to at length]
  (let [items (mapv (fn [idx] (aget from (+ start idx))) (range length))]
    (dorun (map-indexed (fn [idx x] (aset to (+ at idx) x)) items))))

(defn gc
  "Does nothing: unreferenced values are freed at once."
  {:examples '[[(System/gc) nil]]}
  []
  nil)

(defn getProperty
  "Returns a property of the host, or a default. Those that depend on the machine are not set."
  {:examples '[[(System/getProperty "line.separator") "\n"]
               [(System/getProperty "user.home" "?") "?"]]}
  ([property] (get properties property))
  ([property default] (get properties property default)))

(defn getProperties
  "Returns the properties of the host that are the same everywhere."
  {:examples '[[(get (System/getProperties) "path.separator") ":"]]}
  []
  properties)

(defn getenv
  "Returns nil: programs have no environment. Without a name, an empty map."
  {:examples '[[(System/getenv "HOME") nil]]}
  ([] {})
  ([_variable] nil))

(defn identityHashCode
  "Returns the hash of a value; 0 for nil."
  {:examples '[[(System/identityHashCode nil) 0]]}
  [x]
  (if (nil? x) 0 (hash x)))

(defn lineSeparator
  "Returns the line separator."
  {:examples '[[(System/lineSeparator) "\n"]]}
  []
  "\n")

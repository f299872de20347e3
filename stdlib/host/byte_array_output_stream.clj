(ns ByteArrayOutputStream
  "`java.io.ByteArrayOutputStream`: collects bytes.")

(deftype ^{:package "java.io"} ByteArrayOutputStream [^:unsynchronized-mutable held]
  java.io.OutputStream
  (close [this] nil)
  (flush [this] nil)
  (reset [this] (set! held []) nil)
  (size [this] (count held))
  (toByteArray [this] (byte-array held))
  (toString [this] (String. (byte-array held)))
  (toString [this charset] (String. (byte-array held) charset))
  (write [this x] (set! held (if (int? x) (conj held (unchecked-byte x)) (into held x))) nil)
  (write [this bytes start length] (set! held (into held (take length (drop start bytes)))) nil))

(defn new
  "Returns a stream without bytes."
  {:examples '[[(vec (.toByteArray (doto (java.io.ByteArrayOutputStream.) (.write 1)))) [1]]]}
  ([] (->ByteArrayOutputStream []))
  ([_size] (->ByteArrayOutputStream [])))

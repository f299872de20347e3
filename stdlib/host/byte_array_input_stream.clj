(ns ByteArrayInputStream
  "`java.io.ByteArrayInputStream`: a stream of the bytes of an array.")

(deftype ^{:package "java.io"} ByteArrayInputStream [held ^:unsynchronized-mutable at]
  java.io.InputStream
  (available [this] (- (count held) at))
  (close [this] nil)
  (read [this]
    (if (< at (count held))
      (let [x (nth held at)]
        (set! at (inc at))
        (bit-and x 0xff))
      -1))
  (read [this bytes] (.read this bytes 0 (count bytes)))
  (read [this bytes start length]
    (let [found (min length (- (count held) at))]
      (if (and (zero? found) (pos? length))
        -1
        (do (dotimes [idx found] (aset bytes (+ start idx) (nth held (+ at idx))))
            (set! at (+ at found))
            found))))
  (readAllBytes [this]
    (let [rest-of-it (subvec held at)]
      (set! at (count held))
      (byte-array rest-of-it)))
  (readText [this] (String. (.readAllBytes this)))
  (skip [this n]
    (let [skipped (max 0 (min n (- (count held) at)))]
      (set! at (+ at skipped))
      skipped)))

(defn new
  "Returns a stream of the bytes of an array."
  {:examples '[[(.read (java.io.ByteArrayInputStream. (byte-array [1 2]))) 1]]}
  ([bytes] (->ByteArrayInputStream (vec bytes) 0))
  ([bytes start length] (->ByteArrayInputStream (vec (take length (drop start bytes))) 0)))

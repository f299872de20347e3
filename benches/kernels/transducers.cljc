;; The pipeline as transducers.
(defn kernel []
  (transduce (comp (filter even?) (map inc)) + 0 (range 1000000)))

;; The lazy pipeline that everybody writes.
(defn kernel []
  (reduce + (map inc (filter even? (range 1000000)))))

;; A hundred thousand maps, sorted by a key of theirs.
(def rows
  (mapv (fn [n] {:id n :key (mod (* n 7919) 100003) :name (str "row " n)}) (range 100000)))

(defn kernel []
  (:id (nth (vec (sort-by :key rows)) 77777)))

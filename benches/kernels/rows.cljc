;; About five megabytes of rows, on which read_edn and print_edn stand.
(require '[clojure.edn :as edn])

(def rows
  (mapv (fn [n]
          {:id n
           :name (str "row number " n)
           :tags [:a :b/c "d\n"]
           :share (+ (rem n 100) 0.5)
           :open? (even? n)
           :next nil})
        (range 52000)))

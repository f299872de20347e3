(let [t (transient {})] (doseq [i (range 20)] (assoc! t i (str i))) (count (persistent! t)))

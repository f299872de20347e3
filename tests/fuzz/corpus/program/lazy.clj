(->> (range) (filter odd?) (map #(* % %)) (take-while #(< % 1000)) (partition-all 3) (into []))

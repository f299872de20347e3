(println (count (vec (range 1000000))))

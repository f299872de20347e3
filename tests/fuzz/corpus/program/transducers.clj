(into #{} (comp (map inc) (partition-all 2) cat (distinct) (take 5)) (iterate inc 1))
(sort-by - (sequence (interpose :x) "ab"))

(loop [i 0 acc []] (if (< i 10) (recur (inc i) (conj acc #(+ i %))) (map #(% 1) acc)))

(let [[a & [b {:keys [c] :or {c 3} :as m}]] [1 2 {:d 4}]] [a b c m])

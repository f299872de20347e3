`(let [x# ~y z# ~@zs] 'a @b #'c ^:m [d] ^{:k 1} {})

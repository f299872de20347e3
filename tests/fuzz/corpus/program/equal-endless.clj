(= (range) (range))

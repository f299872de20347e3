(reduce + (range))

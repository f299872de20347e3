(print (cycle [1]))

def kernel():
    n = total = 0
    while n < 10000000:
        n, total = n + 1, total + n
    return total

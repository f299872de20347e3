# As measure.cljc: the processor time of the process.
from time import process_time_ns


def measure(kernel, runs, warm_up_nanos):
    result = kernel()
    begun, n = process_time_ns(), 0
    while n < 50 and process_time_ns() - begun < warm_up_nanos:
        kernel()
        n += 1
    times = []
    for _ in range(runs):
        start = process_time_ns()
        kernel()
        times.append(process_time_ns() - start)
    print("result", result)
    print("nanoseconds", sorted(times)[runs // 2])

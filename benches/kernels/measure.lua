-- As measure.cljc: the processor time of the process.
function measure(kernel, runs, warm_up_nanos)
  local result = kernel()
  local begun, n = os.clock(), 0
  while n < 50 and (os.clock() - begun) * 1e9 < warm_up_nanos do
    kernel()
    n = n + 1
  end
  local times = {}
  for i = 1, runs do
    local start = os.clock()
    kernel()
    times[i] = os.clock() - start
  end
  table.sort(times)
  print("result", result)
  print("nanoseconds", math.floor(times[runs // 2 + 1] * 1e9))
end

function kernel()
  local n, sum = 0, 0
  while n < 10000000 do
    n, sum = n + 1, sum + n
  end
  return sum
end

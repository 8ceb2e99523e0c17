-- Buyers for wrk: each request is an order of one unit by the next of the buyers. docs/load.md says how to run it.
--
--   wrk -t2 -c64 -d5s -s deploy/wrk/orders.lua http://localhost:8080 -- SKU
--
-- A line of the file $TOKENS is a buyer's token, as `shop token` makes it. Without the file, the shop has to be a teaching shop,
-- cmd/lab, in which each order has a buyer of its own; $STRATEGY and $THINK choose how it is sold.
--
-- Answers are counted by their status: a request that a busy shop answers 503 is not repeated, and no order is paid or
-- cancelled.

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
  thread:set("number", #threads)
end

-- Random, so that keys differ between all machines and runs.
local function random()
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(8)
  file:close()
  return (bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

function init(args)
  assert(args[1], "name the SKU behind --")
  run, sent, statuses, tokens = random(), 0, {}, {}
  first = tonumber(run:sub(1, 8), 16) -- threads and machines begin at different buyers
  if os.getenv("TOKENS") then
    for line in io.lines(os.getenv("TOKENS")) do tokens[#tokens + 1] = line end
  end
  body = ('{"lines":[{"sku":"%s","quantity":1}]}'):format(args[1])
  headers = { ["Content-Type"] = "application/json" }
  headers["Shop-Strategy"], headers["Shop-Think"] = os.getenv("STRATEGY"), os.getenv("THINK")
end

function request()
  sent = sent + 1
  local key = ("wrk-%s-%d-%d"):format(run, number, sent)
  headers["Idempotency-Key"] = key
  if #tokens > 0 then
    headers["Authorization"] = "Bearer " .. tokens[(first + sent) % #tokens + 1]
  else
    headers["Shop-Buyer"] = key
  end
  return wrk.format("POST", "/v1/orders", headers, body)
end

function response(status)
  statuses[status] = (statuses[status] or 0) + 1
end

function done()
  local total = {}
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get("statuses")) do total[status] = (total[status] or 0) + count end
  end
  print(("\n%d orders, %d refused"):format(total[201] or 0, total[409] or 0))
  for status, count in pairs(total) do
    if status ~= 201 and status ~= 409 then print(("%d answers with status %d"):format(count, status)) end
  end
end

-- Free a key, or leave its line.
--
-- KEYS[1]  hash {owner, until, fence, released}
-- KEYS[2]  sorted set of the owners that wait
-- ARGV     owner, highest fence in use, ms to keep the key for the next in line,
--          ms to remember the fence, prefix of channels,
--          1 if PUBLISH counts all subscribers (it does not in a cluster)
--
-- Returns 1, or 0 if the owner did not hold the key.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local lease = redis.call('HMGET', KEYS[1], 'owner', 'until', 'fence', 'released')
if lease[1] ~= ARGV[1] then
  redis.call('ZREM', KEYS[2], ARGV[1])
  -- A driver repeats a request whose answer was lost: it was this owner's.
  return lease[4] == ARGV[1] and 1 or 0
end
if now >= tonumber(lease[2]) then
  return 0 -- too late; whoever comes next takes it over
end
local fence = math.max(tonumber(lease[3]), tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'fence', string.format('%.0f', fence), 'released', ARGV[1])

-- The key passes to the first in line whose process still listens, for a short
-- time, within which it has to ask for its lease.
while true do
  local next = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not next then
    break
  end
  redis.call('ZREM', KEYS[2], next)
  local heard = redis.pcall('PUBLISH', ARGV[5] .. string.match(next, '^[^:]+'), next)
  if type(heard) == 'number' and (heard > 0 or ARGV[6] ~= '1') then
    redis.call('HSET', KEYS[1], 'owner', next, 'until', string.format('%.0f', now + ARGV[3] * 1000))
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    return 1
  end
end

redis.call('HDEL', KEYS[1], 'owner', 'until')
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1

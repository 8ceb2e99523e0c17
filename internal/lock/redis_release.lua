-- Free a key, or leave its line.
--
-- KEYS[1]  hash {owner, fence, released}
-- KEYS[2]  sorted set of the owners that wait
-- ARGV     owner, highest fence in use, ms to keep the key for the next in line,
--          ms to remember the fence, prefix of channels,
--          1 if PUBLISH counts all subscribers (it does not in a cluster)
--
-- Returns 1, or 0 if the owner did not hold the key.

if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
  redis.call('ZREM', KEYS[2], ARGV[1])
  -- A driver repeats a request whose answer was lost: it was this owner's.
  if redis.call('HGET', KEYS[1], 'released') == ARGV[1] then
    return 1
  end
  return 0
end
local fence = math.max(tonumber(redis.call('HGET', KEYS[1], 'fence')), tonumber(ARGV[2]))
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
    redis.call('HSET', KEYS[1], 'owner', next)
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
    return 1
  end
end

redis.call('HDEL', KEYS[1], 'owner')
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1

-- Give a lease its full TTL again, if it is still the owner's.
--
-- KEYS[1]  hash {owner, until, fence}
-- ARGV     owner, TTL in ms, ms to remember the fence, highest fence in use
--
-- Returns the fence, or 0 if the owner does not hold the key.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local lease = redis.call('HMGET', KEYS[1], 'owner', 'until', 'fence')
if lease[1] ~= ARGV[1] or now >= tonumber(lease[2]) then
  return 0
end
local fence = math.max(tonumber(lease[3]), tonumber(ARGV[4]))
redis.call('HSET', KEYS[1],
  'until', string.format('%.0f', now + ARGV[2] * 1000), 'fence', string.format('%.0f', fence))
redis.call('PEXPIRE', KEYS[1], ARGV[2] + ARGV[3])
return fence

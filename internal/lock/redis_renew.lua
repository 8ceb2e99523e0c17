-- Give a lease its full TTL again, if it is still the owner's.
--
-- KEYS[1]  hash {owner, fence}
-- ARGV     owner, TTL in ms, highest fence in use
--
-- Returns the fence, or 0 if the owner does not hold the key.

if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
  return 0
end
local fence = math.max(tonumber(redis.call('HGET', KEYS[1], 'fence')), tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], 'fence', string.format('%.0f', fence))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return fence

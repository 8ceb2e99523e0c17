-- Take the lease of a key, or stand in line for it.
--
-- KEYS[1]  hash {owner, fence}; it has an owner while the key is held
-- KEYS[2]  sorted set of the owners that wait, by the server's time
-- ARGV     owner, TTL in ms, 1 to stand in line
--
-- Returns {1, fence} or {0, milliseconds that the holder has left}.

local owner, ttl, queue = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local holder = redis.call('HGET', KEYS[1], 'owner')
if holder and holder ~= owner then
  local left = redis.call('PTTL', KEYS[1])
  if queue then
    redis.call('ZADD', KEYS[2], 'NX', string.format('%.0f', now), owner)
    redis.call('PEXPIRE', KEYS[2], 2 * math.max(left, ttl))
  end
  return {0, left}
end

-- Free, or our own: granted before and the answer lost, or kept for us by a
-- release. Nobody uses a fence of ours yet, so a new one is always right.
local last = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
local fence = math.max(last + 1, now)
redis.call('HSET', KEYS[1], 'owner', owner, 'fence', string.format('%.0f', fence))
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('ZREM', KEYS[2], owner)
return {1, fence}

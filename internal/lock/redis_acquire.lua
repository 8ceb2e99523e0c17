-- Take the lease of a key, or stand in line for it.
--
-- KEYS[1]  hash {owner, until, fence, released}; "until" is the server's time in
--          microseconds. It outlives the lease, for its fence's sake.
-- KEYS[2]  sorted set of the owners that wait, by the server's time
-- ARGV     owner, TTL in ms, ms to remember the fence, 1 to stand in line
--
-- Returns {1, fence} or {0, milliseconds that the holder has left}.

local owner, ttl = ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local lease = redis.call('HMGET', KEYS[1], 'owner', 'until', 'fence')
local holder, last = lease[1], tonumber(lease[3] or '0')
if holder and holder ~= owner and now < tonumber(lease[2]) then
  local left = math.ceil((tonumber(lease[2]) - now) / 1000)
  if ARGV[4] == '1' then
    redis.call('ZADD', KEYS[2], 'NX', string.format('%.0f', now), owner)
    redis.call('PEXPIRE', KEYS[2], 2 * math.max(left, ttl))
  end
  return {0, left}
end

-- Free, or our own: granted before and the answer lost, or kept for us by a
-- release. Nobody uses a fence of ours yet, so a new one is always right. A
-- holder whose time ran out may have used numbers that it did not tell.
local step = 1
if holder and holder ~= owner then
  step = 65536
end
local fence = math.max(last + step, now)
redis.call('HSET', KEYS[1], 'owner', owner,
  'until', string.format('%.0f', now + ttl * 1000), 'fence', string.format('%.0f', fence))
redis.call('PEXPIRE', KEYS[1], ttl + tonumber(ARGV[3]))
redis.call('ZREM', KEYS[2], owner)
return {1, fence}

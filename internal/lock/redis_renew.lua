-- Give a lease its full TTL again, if it is still the owner's.
--
-- KEYS[1]  "<version><fence><mark><owner> <released>", see redis_acquire.lua
-- ARGV     owner, TTL in ms, highest fence in use
--
-- Returns the fence, or 0 if the owner does not hold the key.

local lease = redis.call('GET', KEYS[1]) or ''
local memory, fence, mark, holder, released = string.match(lease, '^1%.(%d+):(%d+)(%p)(%S+) (%S+)')
if holder ~= ARGV[1] or redis.call('PTTL', KEYS[1]) <= tonumber(memory) then
  return 0
end
local above = tonumber(ARGV[3]) - tonumber(fence)
if above >= gap and tonumber(ARGV[3]) > 2 ^ 52 then -- raised, and not by hand-offs
  return redis.error_reply('ERR a fence of ' .. ARGV[3] .. ' leaves no room for exact ones above it')
end
if ARGV[3] ~= fence and above > 0 then
  fence = ARGV[3]
end
version, memory = remembering(fence, redis.call('TIME'))
redis.call('SET', KEYS[1], version .. fence .. mark .. holder .. ' ' .. released, 'PX', ARGV[2] + memory)
return fence

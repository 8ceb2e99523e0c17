-- Give a lease its full TTL again, if it is still the owner's.
--
-- KEYS[1]  "<version><fence><mark><owner> <released>", see redis_acquire.lua
-- ARGV     owner, TTL plus memory in ms, highest fence in use
--
-- Returns the fence, or 0 if the owner does not hold the key.

local lease = redis.call('GET', KEYS[1]) or ''
if string.sub(lease, 1, #version) ~= version then
  return 0
end
local fence, mark, holder, released = string.match(lease, '(%d+)(%p)(%S+) (%S+)', #version + 1)
if holder ~= ARGV[1] or redis.call('PTTL', KEYS[1]) <= memory then
  return 0
end
local above = tonumber(ARGV[3]) - tonumber(fence)
if above >= gap and tonumber(ARGV[3]) > 2 ^ 52 then -- more than hand-offs counted on
  return redis.error_reply('ERR a fence of ' .. ARGV[3] .. ' leaves no room for exact ones above it')
end
if ARGV[3] ~= fence and above > 0 then
  fence = ARGV[3]
end
redis.call('SET', KEYS[1], version .. fence .. mark .. holder .. ' ' .. released, 'PX', ARGV[2])
return fence

-- Free a key, or leave its line.
--
-- KEYS[1]  "<version><fence><mark><owner> <released>", see redis_acquire.lua
-- KEYS[2]  sorted set of the waiting owners; none: the owner is not among them
-- ARGV     highest fence in use, owner; 'cluster': PUBLISH does not count all
--          subscribers; 'alone': free the key even if others wait: they ask
--          again in a while
--
-- Returns 1, 0 if the owner did not hold the key, or -1 if nothing was done
-- because others wait and KEYS[2] is needed.

local used, owner = ARGV[1], ARGV[2]
local lease = redis.call('GET', KEYS[1]) or ''
local taken = version .. used .. '+' .. owner .. ' '
if string.sub(lease, 1, #taken) == taken then -- unchanged since it was taken, without waiters
  redis.call('SET', KEYS[1], version .. used .. '-' .. owner, 'KEEPTTL')
  return 1
end

local own, memory, fence, mark, holder, released = string.match(lease .. ' ', '^(1%.(%d+):)(%d+)(%p)(%S+) (%S*)')
if mark == '-' then
  released = holder
  holder = nil
end
if holder ~= owner and KEYS[2] then
  redis.call('ZREM', KEYS[2], owner)
end
if released == owner then
  return 1 -- a driver repeats this request, because its answer was lost
end
if holder ~= owner then
  return 0
end
-- If the lease ran out, no other owner has come since: the release is still good.
if tonumber(used) > tonumber(fence) then
  fence = used
end

-- The key passes to the first in line whose process still listens. It is kept
-- for a short time, within which the process has to ask for its lease.
local channels = string.match(KEYS[1], '^[^{]*') .. 'wake:'
while mark == '*' and ARGV[3] ~= 'alone' do
  if not KEYS[2] then
    return -1
  end
  local next = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not next then
    break
  end
  redis.call('ZREM', KEYS[2], next)
  local heard = next ~= owner and redis.pcall('PUBLISH', channels .. string.match(next, '^[^:]+'), next)
  if type(heard) == 'number' and (heard > 0 or ARGV[3] == 'cluster') then
    redis.call('SET', KEYS[1], own .. fence .. '*' .. next .. ' ' .. owner, 'PX', reservation + memory)
    return 1
  end
end

redis.call('SET', KEYS[1], own .. fence .. '-' .. owner, 'KEEPTTL')
return 1

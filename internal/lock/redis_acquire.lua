-- Take the lease of a key, or wait in line for it. redis.go and redis_memory.lua
-- define base, reservation, gap, memory, version and remembering().
--
-- KEYS[1]  held: "<version><fence><mark><owner> <released>", free: "<version><fence>-<released>". version is
--          "1.<memory>:"; fence is the highest in use; mark is + without waiters, and * if KEYS[2] may have
--          waiters; released is the owner that released the key last, for a repeated release, or '-'. The string
--          outlives the lease by memory ms, to keep the fence: the remaining time of the lease is PTTL minus memory.
-- KEYS[2]  sorted set of the waiting owners, by the server's time; none: do not wait in line
-- ARGV     owner, and TTL in ms
--
-- Returns the fence, or minus the milliseconds that the holder has left.

local owner = ARGV[1]
local time = redis.call('TIME')
local fence = time[1] .. string.rep('0', 6 - #time[2]) .. time[2] -- in microseconds
local mark, released = KEYS[2] and '*' or '+', '-' -- KEYS[2] may still be there when KEYS[1] is gone

local lease = redis.call('GET', KEYS[1])
if lease then
  local prefix, remembered = version, memory
  if string.sub(lease, 1, #version) ~= version then
    prefix, remembered = string.match(lease, '^(1%.(%d+):)')
    if not prefix then
      return -math.max(redis.call('PTTL', KEYS[1]), 100) -- held until it is gone
    end
  end
  lease = string.sub(lease, #prefix + 1)
  local at = string.find(lease, '%p')
  local last, step = string.sub(lease, 1, at - 1), 1
  mark = string.sub(lease, at, at)
  if mark == '-' then
    mark, released = '+', string.sub(lease, at + 1)
  else
    local holder
    holder, released = string.match(lease, '(%S+) (%S+)', at + 1)
    if holder ~= owner then
      -- Redis rounds a TTL down to whole milliseconds: one more may be left.
      local left = redis.call('PTTL', KEYS[1]) - remembered + 1
      if left > 0 then
        if KEYS[2] then
          redis.call('ZADD', KEYS[2], 'NX', fence, owner)
          -- Never lower the TTL: others in line may have longer ones. PEXPIRE's GT
          -- needs Redis 7.
          redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), 2 * math.max(left, ARGV[2])))
          redis.call('SET', KEYS[1], prefix .. last .. '*' .. holder .. ' ' .. released, 'KEEPTTL')
        end
        return -left
      end
      mark = '*'
      step = gap -- the lease ran out: its holder may have used numbers without reporting them
    end
  end
  if released == owner then
    released = '-'
  end
  if last + step > tonumber(fence) then
    fence = string.format('%.0f', last + step)
    version, memory = remembering(fence, time)
  end
end

-- Free, or our own: granted before with a lost answer, or kept for us by a
-- release. We have not used a fence yet, so a new one is always right.
redis.call('SET', KEYS[1], version .. fence .. mark .. owner .. ' ' .. released, 'PX', ARGV[2] + memory)
if KEYS[2] and mark == '*' then
  redis.call('ZREM', KEYS[2], owner)
end
return fence

-- Take the lease of a key, or wait in line for it. redis.go and redis_memory.lua
-- define base, reservation, gap, memory, version and remembering().
--
-- KEYS[1]  held: "<version><fence><mark><owner> <released>", free: "<version><fence>-<released>". version is
--          "1.<memory>:"; fence is the highest in use; the mark is + where nobody waits, * where KEYS[2] may have
--          waiters; released is who gave the key back last, for a release that is repeated, or '-'. The string
--          outlives the lease by memory ms, to keep its fence: what is left of the lease is PTTL minus memory.
-- KEYS[2]  sorted set of the owners that wait, by the server's time; none: not to wait in line
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
      -- Redis rounds a TTL down to whole milliseconds: one more is left, maybe.
      local left = redis.call('PTTL', KEYS[1]) - remembered + 1
      if left > 0 then
        if KEYS[2] then
          redis.call('ZADD', KEYS[2], 'NX', fence, owner)
          -- Never less than it has: others in line may have longer TTLs. PEXPIRE's GT
          -- needs Redis 7.
          redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), 2 * math.max(left, ARGV[2])))
          redis.call('SET', KEYS[1], prefix .. last .. '*' .. holder .. ' ' .. released, 'KEEPTTL')
        end
        return -left
      end
      mark = '*'
      step = gap -- its time ran out, and it may have used numbers that it did not tell
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

-- Free, or our own: granted before and the answer lost, or kept for us by a
-- release. Nobody uses a fence of ours yet, so a new one is always right.
redis.call('SET', KEYS[1], version .. fence .. mark .. owner .. ' ' .. released, 'PX', ARGV[2] + memory)
if KEYS[2] and mark == '*' then
  redis.call('ZREM', KEYS[2], owner)
end
return fence

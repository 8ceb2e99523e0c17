-- Give the key its full TTL again on this node, if it is the owner's. A node
-- that has lost its memory refuses: a renewal never takes a free key.
--
-- KEYS[1]  "<request> <owner>", see acquire.lua
-- ARGV     owner, TTL in ms, number of this request (not used)
--
-- Returns 1, or 0 if the owner does not hold the key here.

local _, owner = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (.*)$')
if owner ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])

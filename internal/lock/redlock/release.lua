-- Free the key on this node, if it is the owner's and was not taken by a later
-- request than this one.
--
-- KEYS[1]  "<request> <owner>", see acquire.lua
-- ARGV     owner, TTL in ms (not used), number of this request
--
-- Returns 1, or 0 if the owner did not hold the key here.

local request, owner = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (.*)$')
if owner ~= ARGV[1] or tonumber(request) > tonumber(ARGV[3]) then
  return 0
end
return redis.call('DEL', KEYS[1])

-- Free the key on this node, if it is the owner's.
--
-- KEYS[1]  the owner's name
-- ARGV     owner, TTL in ms (not used)
--
-- Returns 1, or 0 if the owner did not hold the key here.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])

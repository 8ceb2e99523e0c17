-- Give the key its full TTL again on this node, if it is the owner's. A node
-- that has lost its memory refuses: a renewal never takes a free key.
--
-- KEYS[1]  the owner's name
-- ARGV     owner, TTL in ms
--
-- Returns 1, or 0 if the owner does not hold the key here.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])

-- Take the key on this node, or find that it is ours already.
--
-- KEYS[1]  the owner's name; it has a TTL
-- ARGV     owner, TTL in ms
--
-- Returns 1, or 0 if somebody else holds the key here.

if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
-- Ours: granted before and the answer lost, or asked for by the client twice.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])

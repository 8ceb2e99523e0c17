-- Take the key on this node, or find that it is ours already.
--
-- KEYS[1]  "<request> <owner>": the latest request that took it, and its owner's
--          name; it has a TTL
-- ARGV     owner, TTL in ms, number of this request
--
-- Returns 1, or 0 if somebody else holds the key here.

if redis.call('SET', KEYS[1], ARGV[3] .. ' ' .. ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
-- Ours: granted before and the answer lost, or asked for by the client twice.
local request, owner = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (.*)$')
if owner ~= ARGV[1] then
  return 0
end
if tonumber(request) > tonumber(ARGV[3]) then -- this one comes late: the vote is a later one's
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[3] .. ' ' .. owner, 'PX', ARGV[2])
return 1

-- Take units from a count, if enough are left.
--
-- KEYS[1]  the count
-- ARGV[1]  the units
local left = redis.call("GET", KEYS[1])
if not left then
	return "unknown"
end
if tonumber(left) < tonumber(ARGV[1]) then
	return "too few"
end
redis.call("DECRBY", KEYS[1], ARGV[1])
return "taken"

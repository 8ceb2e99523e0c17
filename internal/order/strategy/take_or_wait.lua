-- Take units, wait for those that others may give back, or let one buyer at a time count again.
--
-- KEYS  of reconciledKeys
-- ARGV  the taking, its units, the seconds until it is overdue
if redis.call("ZSCORE", KEYS[2], ARGV[1]) then
	return "taken" -- by an earlier try of this order
end
local left, now = tonumber(redis.call("GET", KEYS[1])), redis.call("TIME")[1]
if left and left >= tonumber(ARGV[2]) then
	redis.call("DECRBY", KEYS[1], ARGV[2])
	redis.call("ZADD", KEYS[2], now + ARGV[3], ARGV[1])
	return "taken"
end
if left and redis.call("ZCOUNT", KEYS[2], 0, now - 1) == 0 then -- none is overdue
	return redis.call("ZCARD", KEYS[2]) == 0 and "too few" or "wait"
end
return redis.call("SET", KEYS[3], ARGV[1], "NX", "EX", 2) and "unknown" or "wait"

-- Forget a taking, and give units back to the count, unless they were counted again.
--
-- KEYS  of reconciledKeys
-- ARGV  the taking, the units to give back
if redis.call("ZREM", KEYS[2], ARGV[1]) == 1 and redis.call("EXISTS", KEYS[1]) == 1 then
	return redis.call("INCRBY", KEYS[1], ARGV[2]) .. " left"
end
return "counted again"

-- Count again. Takings that are overdue or written no longer count.
--
-- KEYS  of reconciledKeys
-- ARGV  the units in the database, the IDs of the orders that are written
redis.call("ZREMRANGEBYSCORE", KEYS[2], 0, redis.call("TIME")[1] - 1)
local left, written = tonumber(ARGV[1]), {}
for i = 2, #ARGV do
	written[ARGV[i]] = true
end
for _, taking in ipairs(redis.call("ZRANGE", KEYS[2], 0, -1)) do
	local units, id = string.match(taking, "(%d+):(.*)")
	if written[id] then
		redis.call("ZREM", KEYS[2], taking)
	else
		left = left - units
	end
end
redis.call("SET", KEYS[1], left, "EX", 60)
redis.call("DEL", KEYS[3]) -- whose it is does not matter: the row's lock lets one buyer at a time come here
return left .. " left"

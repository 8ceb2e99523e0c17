package mutants

// storeMutants are mistakes in the stores, which the conformance suite notices.
var storeMutants = []mutant{
	{"Memory: an owner is compared by prefix", "TestMemory/OwnerComparedWhole", []edit{
		{"memory.go", "k.owner != c.Owner && now.Before(k.expires) {", "!strings.HasPrefix(k.owner, c.Owner) && now.Before(k.expires) {"},
		{"memory.go", "\t\"slices\"\n", "\t\"slices\"\n\t\"strings\"\n"},
	}},
	{"Memory: a renewal revives what ran out", "TestMemory/RenewalNeverRevives", []edit{
		{"memory.go", "if k == nil || k.owner != c.Owner || !time.Now().Before(k.expires) {", "if k == nil {"},
	}},
	{"Memory: a release does not compare the owner", "TestMemory/OwnerComparedWhole", []edit{
		{"memory.go", "held := k.owner == c.Owner && now.Before(k.expires)\n\tif k.owner == c.Owner {", "held := now.Before(k.expires)\n\tif held {"},
	}},
	{"Memory: a release wakes nobody", "TestMemory/WokenByRelease", []edit{
		{"memory.go", "\t\t\twakeUp(next.told)\n", ""},
	}},
	{"Memory: one who gives up stays in line", "TestMemory/QuitterLeavesLine", []edit{
		{"memory.go", "c.Fence)\n\tk.leave(c.Owner)\n", "c.Fence)\n"},
	}},
	{"Memory: fences come from the clock alone", "TestMemory/FenceRaised", []edit{
		{"memory.go", "max(m.fence+step, now.UnixMicro())", "step*0 + now.UnixMicro()"},
	}},
	{"Redis: an owner is compared by prefix", "TestRedis/OwnerComparedWhole", []edit{
		{"redis_acquire.lua", "if holder ~= owner then", "if string.sub(holder, 1, #owner) ~= owner then"},
	}},
	{"Redis: a key that is held is taken", "TestRedis/TryAcquire", []edit{
		{"redis_acquire.lua", "if holder ~= owner then", "if false then"},
	}},
	{"Redis: a lease never runs out", "TestRedis/CrashedHolder", []edit{
		{"redis_acquire.lua", "if left > 0 then", "if true then"},
	}},
	{"Redis: fences are counted, and the count is lost", "TestRedis/FenceSurvivesForgetting", []edit{
		{"redis_acquire.lua", "time[1] .. string.rep('0', 6 - #time[2]) .. time[2]", "'1'"},
	}},
	{"Redis: fences come from the clock alone", "TestRedis/FenceRaised", []edit{
		{"redis_acquire.lua", "if last + step > tonumber(fence) then", "if false then"},
	}},
	{"Redis: one whose time ran out may have used fences that nobody knows: forgets it", "TestRedis/FenceRaised", []edit{
		{"redis_acquire.lua", "step = 65536 --", "step = 0 --"},
	}},
	{"Redis: a renewal revives what ran out", "TestRedis/RenewalNeverRevives", []edit{
		{"redis_renew.lua", "if holder ~= ARGV[1] or redis.call('PTTL', KEYS[1]) <= memory then", "if not holder then"},
	}},
	{"Redis: a renewal does not raise the fence", "TestRedis/FenceRaised", []edit{
		{"redis_renew.lua", "fence = ARGV[3]", "fence = fence"},
	}},
	{"Redis: a release does not compare the owner", "TestRedis/OwnerComparedWhole", []edit{
		{"redis_release.lua", "\nif holder ~= owner then\n  return", "\nif not holder then\n  return"},
	}},
	{"Redis: the usual release compares the owner by prefix", "TestRedis/OwnerComparedWhole", []edit{
		{"redis_release.lua", "1, #ARGV[1]) == ARGV[1] then", "1, #ARGV[1] - 1) == string.sub(ARGV[1], 1, -2) then"},
	}},
	{"Redis: a release calls nobody", "TestRedis/WokenByRelease", []edit{
		{"redis_release.lua", "redis.pcall('PUBLISH', channels .. string.match(next, '^[^:]+'), next)", "1"},
	}},
	{"Redis: one who gives up stays in line", "TestRedis/QuitterLeavesLine", []edit{
		{"redis_release.lua", "  redis.call('ZREM', KEYS[2], owner)\n", ""},
	}},
	{"Redis: a release does not know that somebody stands in line", "TestRedis/WokenByRelease", []edit{
		{"redis_acquire.lua", "last .. '*' .. holder", "last .. '+' .. holder"},
	}},
	{"Redis: who stands in line is not in order", "TestRedis/StoreLine", []edit{
		{"redis_release.lua", "'ZRANGE', KEYS[2], 0, 0", "'ZRANGE', KEYS[2], -1, -1"},
	}},
}

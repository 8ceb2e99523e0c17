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
	{"Memory: fences come from the clock alone", "TestMemory/FenceRaised", []edit{
		{"memory.go", "max(m.fence+step, now.UnixMicro())", "step*0 + now.UnixMicro()"},
	}},
	{"Redis: an owner is compared by prefix", "TestRedis/OwnerComparedWhole", []edit{
		{"redis_acquire.lua", "holder ~= owner and now", "string.sub(holder, 1, #owner) ~= owner and now"},
	}},
	{"Redis: a key that is held is taken", "TestRedis/TryAcquire", []edit{
		{"redis_acquire.lua", "holder ~= owner and now", "false and now"},
	}},
	{"Redis: a lease never runs out", "TestRedis/CrashedHolder", []edit{
		{"redis_acquire.lua", " and now < tonumber(lease[2]) then", " then"},
	}},
	{"Redis: fences are counted, and the count is lost", "TestRedis/FenceSurvivesForgetting", []edit{
		{"redis_acquire.lua", "math.max(last + step, now)", "last + step"},
	}},
	{"Redis: fences come from the clock alone", "TestRedis/FenceRaised", []edit{
		{"redis_acquire.lua", "math.max(last + step, now)", "now"},
	}},
	{"Redis: one whose time ran out may have used fences that nobody knows: forgets it", "TestRedis/FenceRaised", []edit{
		{"redis_acquire.lua", "  step = 65536\n", "  step = 0\n"},
	}},
	{"Redis: a renewal revives what ran out", "TestRedis/RenewalNeverRevives", []edit{
		{"redis_renew.lua", "if lease[1] ~= ARGV[1] or now >= tonumber(lease[2]) then", "if not lease[3] then"},
	}},
	{"Redis: a renewal does not raise the fence", "TestRedis/FenceRaised", []edit{
		{"redis_renew.lua", ", tonumber(ARGV[4]))", ")"},
	}},
	{"Redis: a release does not compare the owner", "TestRedis/OwnerComparedWhole", []edit{
		{"redis_release.lua", "if lease[1] ~= ARGV[1] then", "if not lease[1] then"},
	}},
	{"Redis: a release calls nobody", "TestRedis/WokenByRelease", []edit{
		{"redis_release.lua", "redis.pcall('PUBLISH', ARGV[5] .. string.match(next, '^[^:]+'), next)", "1"},
	}},
	{"Redis: who stands in line is not in order", "TestRedis/StoreLine", []edit{
		{"redis_release.lua", "'ZRANGE', KEYS[2], 0, 0", "'ZRANGE', KEYS[2], -1, -1"},
	}},
}

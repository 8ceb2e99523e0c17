package mutants

import "strings"

// mutant is a mistake. Its edits are made in the sources of package lock.
type mutant struct {
	rule  string // that it breaks
	test  string // that must fail, as for go test -run
	edits []edit
}

type edit struct{ file, old, new string }

// needsRedis reports whether the test that must fail is one of Redis.
func (m mutant) needsRedis() bool { return strings.HasPrefix(m.test, "TestRedis") }

// sim is a test that runs simulated seeds.
const sim = "TestSim"

// lockerMutants are in the order of the promises in the package comment.
var lockerMutants = []mutant{
	{"trusted from before the request was sent: counts from the answer", sim, []edit{
		{"tenure.go", "deadline: sent.Add(", "deadline: time.Now().Add("},
	}},
	{"trusted until TTL minus Margin: forgets the margin", sim, []edit{
		{"tenure.go", "deadline: sent.Add(l.opt.TTL - l.opt.Margin),", "deadline: sent.Add(l.opt.TTL),"},
	}},
	{"trusted until TTL minus Margin: takes a lease whose answer came too late", sim, []edit{
		{"tenure.go", " || time.Since(sent) >= l.opt.TTL-l.opt.Margin {", " {"},
	}},
	{"a renewal is trusted from before it was sent: counts from the answer", sim, []edit{
		{"tenure.go", "if deadline := sent.Add(", "if deadline := time.Now().Add("},
	}},
	{"no request can delay the end: asks the store once more", sim, []edit{
		{
			"tenure.go",
			"case !t.liveLocked():\n\t\tt.endLocked(ErrLost)\n\t\treturn\n\tcase !t.renewing",
			"case !t.liveLocked():\n\t\tc := t.claim\n\t\tl.mu.Unlock()\n\t\t_, _ = t.ask(context.Background(), c)\n" +
				"\t\tl.mu.Lock()\n\t\tif !t.over {\n\t\t\tt.endLocked(ErrLost)\n\t\t}\n\t\treturn\n\tcase !t.renewing",
		},
	}},
	{"the context ends: forgets to cancel it", sim, []edit{
		{"tenure.go", "\t\tfirst.cancel(cause)\n", "\t\t_ = first\n"},
		{"tenure.go", "\t\t\te.cancel(cause)\n", "\t\t\t_ = e\n"},
	}},
	{"renewed every third of the TTL: only once", sim, []edit{
		{"tenure.go", "\tt.renewing = false\n", ""},
	}},
	{"renewed while held, and trusted for it: forgets the new deadline", sim, []edit{
		{"tenure.go", "\t\tt.extendLocked(sent)\n", "\t\t_ = sent\n"},
	}},
	{"never renewed after the release: the timer goes on", sim, []edit{
		{"tenure.go", "\tt.timer.Stop()\n", ""},
		{"tenure.go", "\tcase t.over:\n\t\treturn\n\tcase !t", "\tcase t.over:\n\t\tc := t.claim\n\t\tgo t.renew(c)\n\t\treturn\n\tcase !t"},
	}},
	{"an owner is one acquisition: asks again under a name that is given back", sim, []edit{
		{"acquire.go", "\tw.releaseWithRetry(w.claim())\n\tw.owner = \"\"\n", "\tw.releaseWithRetry(w.claim())\n"},
	}},
	{"an owner is one acquisition: the next in the queue keeps the name of a lost lease", sim, []edit{
		{"tenure.go", "l.wakeNextLocked(t.queue, \"\")", "l.wakeNextLocked(t.queue, c.Owner)"},
	}},
	{"giving up leaves nothing behind: does not give back what was asked for", sim, []edit{
		{"acquire.go", "\t\t\tw.releaseWithRetry(claim)\n", ""},
		{"acquire.go", "w.abandon() // it may", "w.owner = \"\" // it may"},
	}},
	{"given back after the answer has come: before it", sim, []edit{
		{"acquire.go", "\t\t\t<-answered\n", ""},
	}},
	{"giving up leaves nothing behind: stays in the store's queue", sim, []edit{
		{"acquire.go", "l.releaseWithRetry(Claim{Key: q.key, Owner: owner, TTL: l.opt.TTL, Queue: true})", "_ = owner"},
	}},
	{"Acquire returns when ctx ends: waits for the answer", sim, []edit{
		{"acquire.go", "case <-w.ctx.Done():\n\t\tw.owner", "case <-chan struct{}(nil):\n\t\tw.owner"},
	}},
	{"Acquire returns when ctx ends: a request has more time than its caller", sim, []edit{
		{"acquire.go", "!end.IsZero() && end.Before(limit)", "false"},
	}},
	{"MaxWait: forgets it", sim, []edit{
		{"acquire.go", "w.opt.MaxWait >= 0 {", "w.opt.MaxWait < -1 {"},
	}},
	{"a lost lease is given back: keeps it in the store", sim, []edit{
		{"tenure.go", "\t\tl.releaseWithRetry(c)\n", ""},
	}},
	{"woken by the release, not by polling: asks again and again", sim, []edit{
		{"acquire.go", "err := w.backend.Wait(w.ctx, w.claim(), grant)", "err := w.ctx.Err()"},
	}},
	{"one that gives up lets the next ask: forgets it", sim, []edit{
		{"acquire.go", "\t\tw.wakeNextLocked(w.queue, w.owner)\n", ""},
	}},
	{"a turn that comes as one gives up is passed on: forgets it", sim, []edit{
		{"acquire.go", "\t}\n\tw.wakeNextLocked(w.queue, w.owner)\n", "\t}\n"},
	}},
	{"a lease that comes as one gives up is released: forgets it", sim, []edit{
		{"acquire.go", "w.work.Go(func() { _ = w.lease.Release() })", ""},
	}},
	{"Close ends all leases and gives them back: forgets them", "TestMemory/Close", []edit{
		{"lock.go", "q.tenure.endLocked(ErrClosed)", "_ = q.tenure"},
	}},
	{"a release lets the next ask: forgets it", sim, []edit{
		{"lease.go", "\t\tl.wakeNextLocked(t.queue, \"\")\n", ""},
	}},
	{"first come, first served: a newcomer goes to the front", sim, []edit{
		{"acquire.go", "q.waiting.PushBack(w)", "q.waiting.PushFront(w)"},
	}},
	{"one caller of a process asks the store: all do", sim, []edit{
		{"acquire.go", "case q == nil:", "case q == nil || q.tenure == nil:"},
	}},
	{"handed over for a bounded time: no bound", sim, []edit{
		{"tenure.go", "held > o.HandoffTime || ", ""},
	}},
	{"a fence for each hand-off: keeps the old one", sim, []edit{
		{"tenure.go", "t.claim.Fence++", "t.claim.Fence += 0"},
	}},
	{"the store learns the last fence: not on release", sim, []edit{
		{"lease.go", "\tc := t.claim\n\tl.mu.Unlock()\n\tfirst", "\tc := t.claim\n\tc.Fence = 0\n\tl.mu.Unlock()\n\tfirst"},
	}},
	{"the last release frees a key: an inner one does", sim, []edit{
		{"lease.go", "len(t.leases) > 0:", "len(t.leases) > 0 && e == t.first:"},
	}},
	{"a lease that was taken again ends with the first: goes on", sim, []edit{
		{"tenure.go", "\t\t\te.cancel(cause)\n", "\t\t\t_ = e\n"},
	}},
	{"the last release frees a key: that of the first lease does", sim, []edit{
		{"lease.go", "len(t.leases) > 0:", "len(t.leases) > 0 && e != t.first:"},
	}},
	{"AcquireAll in sorted order: in the caller's", sim, []edit{
		{"lease.go", "slices.Sorted(slices.Values(keys))", "slices.Clone(keys)"},
	}},
	{"AcquireAll gives back what comes after a held key: keeps it", "TestAllOrNone", []edit{
		{"lease.go", "\t_ = others.Release()\n", ""},
	}},
	{"AcquireAll takes all or none: keeps what it got", "TestAllOrNone", []edit{
		{"lease.go", "\t\t_ = all.Release()\n", ""},
	}},
}

// memoryMutants and redisMutants are mistakes in the stores, which the conformance suite notices.
var memoryMutants = []mutant{
	{"Memory: an owner is compared by prefix", "TestMemory/OwnerComparedWhole", []edit{
		{"memory.go", "k.owner != c.Owner && now.Before(k.expires) {", "!strings.HasPrefix(k.owner, c.Owner) && now.Before(k.expires) {"},
		{"memory.go", "\t\"slices\"\n", "\t\"slices\"\n\t\"strings\"\n"},
	}},
	{"Memory: a renewal revives what ran out", "TestMemory/RenewalNeverRevives", []edit{
		{"memory.go", "if k == nil || k.owner != c.Owner || !m.Now().Before(k.expires) {", "if k == nil {"},
	}},
	{"Memory: a release does not compare the owner", "TestMemory/OwnerComparedWhole", []edit{
		{"memory.go", "held := k.owner == c.Owner && now.Before(k.expires)\n\tif k.owner == c.Owner {", "held := now.Before(k.expires)\n\tif held {"},
	}},
	{"Memory: a release wakes nobody", "TestMemory/WokenByRelease", []edit{
		{"memory.go", "\t\t\tclose(next.woken)\n", ""},
	}},
	{"Memory: one who gives up stays in the queue", "TestMemory/GivingUpLeavesQueue", []edit{
		{"memory.go", "c.Fence)\n\tk.leave(c.Owner)\n", "c.Fence)\n"},
	}},
	{"Memory: fences come from the clock alone", "TestMemory/FenceRaised", []edit{
		{"memory.go", "max(m.fence+step, now.UnixMicro())", "step*0 + now.UnixMicro()"},
	}},
}

var redisMutants = []mutant{
	{"Redis: an owner is compared by prefix", "TestRedis/OwnerComparedWhole", []edit{
		{"redis_acquire.lua", "if holder ~= owner then", "if string.sub(holder, 1, #owner) ~= owner then"},
	}},
	{"Redis: a key that is held is taken", "TestRedis/TryAcquire", []edit{
		{"redis_acquire.lua", "if holder ~= owner then", "if false then"},
	}},
	{"Redis: a lease never runs out", "TestRedis/CrashedHolder", []edit{
		{"redis_acquire.lua", "if left > 0 then", "if true then"},
	}},
	{"Redis: fences are counted, and the count is lost", "TestRedis/StoreForgets", []edit{
		{"redis_acquire.lua", "time[1] .. string.rep('0', 6 - #time[2]) .. time[2]", "'1'"},
	}},
	{"Redis: fences come from the clock alone", "TestRedis/FenceRaised", []edit{
		{"redis_acquire.lua", "if last + step > tonumber(fence) then", "if false then"},
	}},
	{"Redis: forgets that a holder whose time ran out may have used fences that nobody knows", "TestRedis/FenceRaised", []edit{
		{"redis_acquire.lua", "step = gap --", "step = 0 --"},
	}},
	{"Redis: a renewal revives what ran out", "TestRedis/RenewalNeverRevives", []edit{
		{"redis_renew.lua", "if holder ~= ARGV[1] or redis.call('PTTL', KEYS[1]) <= tonumber(memory) then", "if not holder then"},
	}},
	{"Redis: a renewal does not raise the fence", "TestRedis/FenceRaised", []edit{
		{"redis_renew.lua", "fence = ARGV[3]", "fence = fence"},
	}},
	{"Redis: a release does not compare the owner", "TestRedis/OwnerComparedWhole", []edit{
		{"redis_release.lua", "\nif holder ~= owner then\n  return", "\nif not holder then\n  return"},
	}},
	{"Redis: the usual release compares the owner by prefix", "TestRedis/OwnerComparedWhole", []edit{
		{"redis_release.lua", "'+' .. owner .. ' '", "'+' .. owner"},
	}},
	{"Redis: a release calls nobody", "TestRedis/WokenByRelease", []edit{
		{"redis_release.lua", "redis.pcall('PUBLISH', channels .. string.match(next, '^[^:]+'), next)", "1"},
	}},
	{"Redis: one who gives up stays in the queue", "TestRedis/GivingUpLeavesQueue", []edit{
		{"redis_release.lua", "  redis.call('ZREM', KEYS[2], owner)\n", ""},
	}},
	{"Redis: a release does not know of the queue", "TestRedis/WokenByRelease", []edit{
		{"redis_acquire.lua", "last .. '*' .. holder", "last .. '+' .. holder"},
	}},
	{"Redis: the queue is not in order", "TestRedis/WokenByRelease", []edit{
		{"redis_release.lua", "'ZRANGE', KEYS[2], 0, 0", "'ZRANGE', KEYS[2], -1, -1"},
	}},
}

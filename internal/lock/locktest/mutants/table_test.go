package mutants

// mutant is a mistake. Its edits are made in the sources of package lock.
type mutant struct {
	rule  string // that it breaks
	test  string // that must fail, as for go test -run
	edits []edit
}

type edit struct{ file, old, new string }

// sim is a test that runs simulated seeds.
const sim = "TestSim"

// mutants are in the order of the promises in the package comment.
var mutants = []mutant{
	{"trusted from before the request was sent: counts from the answer", sim, []edit{
		{"holding.go", "deadline := sent.Add(", "deadline := time.Now().Add("},
	}},
	{"trusted until TTL minus Margin: forgets the margin", sim, []edit{
		{"holding.go", "deadline := sent.Add(l.opt.TTL - l.opt.Margin)", "deadline := sent.Add(l.opt.TTL)"},
	}},
	{"trusted until TTL minus Margin: takes a lease whose answer came too late", sim, []edit{
		{"holding.go", " || !now.Before(deadline) {", " {"},
	}},
	{"a renewal is trusted from before it was sent: counts from the answer", sim, []edit{
		{"renew.go", "deadline := sent.Add(", "deadline := time.Now().Add("},
	}},
	{"no request can delay the end: asks the store once more", sim, []edit{
		{
			"holding.go",
			"meanwhile\n\t\treturn\n\t}\n\th.end(ErrLost)\n",
			"\n\t\treturn\n\t}\n\th.locker.mu.Unlock()\n\t_, _ = h.ask(context.Background(), h.claim)\n\th.locker.mu.Lock()\n\tif !h.over {\n\t\th.end(ErrLost)\n\t}\n",
		},
	}},
	{"the context ends: forgets to cancel it", sim, []edit{
		{"holding.go", "h.lease.cancel(cause)\n", "\n"},
	}},
	{"renewed every third of the TTL: does not set the alarm again", sim, []edit{
		{"renew.go", "\tl.renewals.set(&h.renewal, next)\n", "\t_ = next\n"},
	}},
	{"renewed while held, and trusted for it: forgets the new deadline", sim, []edit{
		{"renew.go", "\t\th.extend(sent)\n\t}\n\tfor ", "\t}\n\tfor "},
	}},
	{"never renewed after the release", sim, []edit{
		{"holding.go", "\th.locker.renewals.clear(&h.renewal)\n", ""},
		{"renew.go", "\tif h.over {\n\t\treturn\n\t}\n", ""},
	}},
	{"MaxHold: forgets it", sim, []edit{
		{"holding.go", "limit > 0 {", "limit < 0 {"},
	}},
	{"an owner is one acquisition: asks again under a name that is given back", sim, []edit{
		{"contend.go", "q.owner = \"\" // whoever", "// whoever"},
	}},
	{"an owner is one acquisition: the next in line keeps the name of a lost lease", sim, []edit{
		{"holding.go", "\th.line.owner = \"\"\n", ""},
	}},
	{"giving up leaves nothing behind: does not give back what was asked for", sim, []edit{
		{"contend.go", "\t\tl.giveBack(claim)\n\t})\n\tif ctx.Err()", "\t})\n\tif ctx.Err()"},
		{"contend.go", "whoever asks next is not to be mixed up with this request\n\t\tl.background(func() { l.giveBack(claim) })", "whoever"},
	}},
	{"given back after the answer has come: before it", sim, []edit{
		{"contend.go", "\t\t<-answered //", "\t\t//"},
	}},
	{"giving up leaves nothing behind: stays in the store's line", sim, []edit{
		{"line.go", "l.background(func() { l.giveBack(c) })", "_ = c"},
	}},
	{"Acquire returns when ctx does: waits for the answer", sim, []edit{
		{"contend.go", "\tcase <-ctx.Done():\n\t}", "\t}"},
	}},
	{"MaxWait: forgets it", sim, []edit{
		{"locker.go", "if l.opt.MaxWait >= 0 {", "if false {"},
	}},
	{"a lost lease is given back: keeps it in the store", sim, []edit{
		{"holding.go", "\t\tl.giveBack(c)\n", ""},
	}},
	{"woken by the release, not by polling: asks again and again", sim, []edit{
		{"contend.go", "err := l.pause(c, q, claim, grant)", "err := c.ctx.Err()"},
	}},
	{"one who gives up passes the turn on: forgets it", sim, []edit{
		{"contend.go", "\tl.passTurn(q)\n", ""},
	}},
	{"a turn that comes as one gives up is passed on: forgets it", sim, []edit{
		{"line.go", "\tcase t.err == nil:\n\t\tl.passTurn(q)\n", ""},
	}},
	{"a lease that comes as one gives up is released: forgets it", sim, []edit{
		{"line.go", "l.background(func() { _ = t.lease.Release() })", ""},
	}},
	{"Close ends all leases and gives them back: forgets them", sim, []edit{
		{"line.go", "q.held.end(ErrClosed)", "_ = q.held"},
	}},
	{"a release gives the turn to the next: forgets it", sim, []edit{
		{"lease.go", "\tl.advance(h.line)\n\treturn err", "\treturn err"},
	}},
	{"first come, first served: a newcomer goes to the front", sim, []edit{
		{"line.go", "q.waiting.PushBack(w)", "q.waiting.PushFront(w)"},
	}},
	{"one caller of a process asks the store: all do", sim, []edit{
		{"locker.go", "\tif q == nil {\n", "\tif q == nil || q.held == nil {\n"},
	}},
	{"handed over a bounded number of times: no bound", sim, []edit{
		{"handoff.go", "h.handoffs >= o.MaxHandoffs || ", ""},
	}},
	{"handed over for a bounded time: no bound", sim, []edit{
		{"handoff.go", "held > o.HandoffTime ||", "false ||"},
	}},
	{"a fence for each hand-off: keeps the old one", sim, []edit{
		{"handoff.go", "h.fence++", "h.fence += 0"},
	}},
	{"the store is told the last fence: does not tell it on release", sim, []edit{
		{"lease.go", "\tc.Fence = h.fence\n\tl.mu.Unlock()\n\te.root", "\tl.mu.Unlock()\n\te.root"},
	}},
	{"the last release frees a key: an inner one does", sim, []edit{
		{"lease.go", "!e.root.done || ", ""},
	}},
	{"a lease that was taken again ends with the first: goes on", "TestMemory/ReentrantEnds", []edit{
		{"holding.go", "\te.cancel(cause)", "\t_ = e"},
	}},
	{"the last release frees a key: that of the first lease does", "TestMemory/ReentrantEnds", []edit{
		{"lease.go", " || len(e.root.again) > 0", ""},
	}},
	{"AcquireAll in sorted order: in the caller's", sim, []edit{
		{"all.go", "slices.Sorted(slices.Values(keys))", "slices.Clone(keys)"},
	}},
	{"AcquireAll takes all or none: keeps what it got", sim, []edit{
		{"all.go", "errors.Join(err, all.Release())", "err"},
	}},
}

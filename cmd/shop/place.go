package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"example.com/shop/internal/app"
)

// place is where a shop runs without servers, or with one of them: a folder for
// the database file and a lock server in this process.
type place struct {
	dir       string        // empty with MySQL
	temporary bool          // dir is removed at the end
	embedded  *app.Embedded // nil with --redis
	redlock   []string      // its servers for teaching mode's strategy of that name, if there are any

	madeSecret, madeToken bool // the buyers' and the operator's are the shop's own
}

// alone reports whether the shop has no server.
func (p *place) alone() bool { return p.dir != "" && p.embedded != nil }

// place makes what the flags leave open.
func (s *serveCommand) place() (at *place, err error) {
	if err := errors.Join(s.both(), s.checkRedis(string(s.Redis))); err != nil {
		return nil, usage("serve", err)
	}
	at = &place{dir: s.Data}
	switch {
	case s.MySQL != "":
	case at.dir != "":
		err = os.MkdirAll(at.dir, 0o750)
	default:
		at.temporary = true
		at.dir, err = os.MkdirTemp("", "shop-")
	}
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if s.Redis != "" {
		return at, nil
	}
	if at.embedded, err = app.StartEmbedded(cmp.Or(at.dir, os.TempDir())); err != nil {
		return nil, errors.Join(err, at.close())
	}
	if s.Lab && len(s.Redlock) == 0 {
		if at.redlock, err = at.embedded.StartRedlock(); err != nil {
			return nil, errors.Join(err, at.close())
		}
	}
	return at, nil
}

// close stops the lock server and removes a temporary folder.
func (p *place) close() error {
	var errs []error
	if p.embedded != nil {
		errs = append(errs, p.embedded.Close())
	}
	if p.temporary {
		errs = append(errs, os.RemoveAll(p.dir))
	}
	return errors.Join(errs...)
}

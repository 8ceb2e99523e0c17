package steps

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/app"
)

// pace is how long locks live in a pair of shops, and how long buyers wait.
type pace struct {
	ttl, wait time.Duration
}

var (
	// quick is for plays in which a lock has to run out.
	quick = pace{ttl: time.Second, wait: 5 * time.Second} //nolint:gochecknoglobals // a constant
	// calm is for plays in which none may, however slow the machine is. ZooKeeper's
	// sessions, three times as long, are at most 40 s.
	calm = pace{ttl: 12 * time.Second, wait: 30 * time.Second} //nolint:gochecknoglobals // a constant
)

// place says where both shops of a pair keep things. It goes to the child as JSON.
type place struct {
	MySQL, SQLite string
	Redis         string
	RedisEmbedded bool
	Redlock       []string
	ZooKeeper     string
	TTL, Wait     time.Duration
}

// settings are those of either shop.
func (p place) settings() app.Settings {
	s := app.Default()
	s.Listen, s.Lab = "127.0.0.1:0", true
	s.ReconcileAt, s.SweepEvery = "off", time.Minute // a process that is paused while a job writes keeps SQLite's file locked
	s.MySQL, s.SQLite, s.Redis, s.RedisEmbedded = p.MySQL, p.SQLite, p.Redis, p.RedisEmbedded
	s.Redlock, s.ZooKeeper = p.Redlock, p.ZooKeeper
	s.LockTTL, s.LabShortTTL, s.LockWait = p.TTL, p.TTL, p.Wait
	return s
}

// migrate brings the schema of a server up to date; a SQLite file's, the shop does.
func (p place) migrate(ctx context.Context) (err error) {
	s := p.settings()
	if s.MySQL == "" {
		return nil
	}
	if err := s.Validate(); err != nil {
		return err
	}
	database, err := app.OpenDatabase(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	_, err = database.Migrate(ctx)
	return err
}

package mysqllock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/lock/mysqllock"
	"example.com/shop/internal/testserver"
)

// "Acquire, Renew and Release get a context with a deadline. They return by then, even if the store is silent or the driver
// knows no contexts": on whichever statement the connection falls silent.
func TestBackend_SilentConnection(t *testing.T) {
	mine := lock.Claim{Key: "mine", Owner: "me", TTL: long}
	acquire := func(key string) func(context.Context, *mysqllock.Backend) error {
		return func(ctx context.Context, b *mysqllock.Backend) error {
			_, err := b.Acquire(ctx, lock.Claim{Key: key, Owner: "me", TTL: long})
			return err
		}
	}
	for name, c := range map[string]struct {
		statement string
		call      func(context.Context, *mysqllock.Backend) error
	}{
		"Acquire":       {"LAST_INSERT_ID", acquire("free")},
		"Acquire, held": {"SELECT owner", acquire("theirs")},
		"Acquire, new":  {"INSERT", acquire("new")},
		"Renew": {"LAST_INSERT_ID", func(ctx context.Context, b *mysqllock.Backend) error {
			_, err := b.Renew(ctx, mine)
			return err
		}},
		"Release": {"LAST_INSERT_ID", func(ctx context.Context, b *mysqllock.Backend) error { return b.Release(ctx, mine) }},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, dsn string) {
				direct := newBackend(t, open(t, dsn))
				free := lock.Claim{Key: "free", Owner: "they", TTL: long}
				mustGrant(t, direct, mine)
				mustGrant(t, direct, lock.Claim{Key: "theirs", Owner: "they", TTL: long})
				mustGrant(t, direct, free)
				if err := direct.Release(bounded(t), free); err != nil {
					t.Fatal(err)
				}
				b, fell := fallsSilent(t, dsn, c.statement)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				returned := make(chan error, 1)
				go func() { returned <- c.call(ctx, b) }()
				await(t, fell)
				cancel()
				if err := await(t, returned); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want the context's error", err)
				}
			})
		})
	}
}

// "If the answer to a request is lost, a repeated request or a release settles it."
func TestBackend_AnswerLost(t *testing.T) {
	mine := lock.Claim{Key: "key", Owner: "me", TTL: long}
	onBoth(t, func(t *testing.T, dsn string) {
		direct := newBackend(t, open(t, dsn))
		mustGrant(t, direct, mine) // the key has a row
		if err := direct.Release(bounded(t), mine); err != nil {
			t.Fatal(err)
		}
		through, link := testserver.Judged(t, with(t, dsn, "interpolateParams", "true"), func(statement string) testserver.Fate {
			if strings.Contains(statement, "LAST_INSERT_ID") {
				return testserver.Mute
			}
			return testserver.Pass
		})
		b := mysqllock.New(open(t, through))
		if g, err := b.Acquire(bounded(t), mine); err == nil {
			t.Fatalf("Acquire: %+v without an answer", g)
		}
		var lost lock.Holder
		testserver.Until(t, "the request is carried out", patience, func() bool {
			lost, _ = direct.Holder(bounded(t), "key")
			return lost.Owner == "me"
		})
		link.Heal()
		if fence := mustGrant(t, b, mine); fence <= lost.Since.UnixMicro() {
			t.Errorf("fence %d after %d, whose answer was lost", fence, lost.Since.UnixMicro())
		}
		if err := b.Release(bounded(t), mine); err != nil {
			t.Errorf("Release: %v", err)
		}
		mustGrant(t, direct, lock.Claim{Key: "key", Owner: "next", TTL: long})
	})
}

// fallsSilent returns a Backend one of whose connections falls silent, without breaking, when it sends the statement:
// fell is then closed.
func fallsSilent(t *testing.T, dsn, statement string) (b *mysqllock.Backend, fell chan struct{}) {
	t.Helper()
	fell, silence := make(chan struct{}), make(chan struct{})
	falls := sync.OnceFunc(func() { close(fell) })
	dsn, _ = testserver.Judged(t, with(t, dsn, "interpolateParams", "true"), func(sent string) testserver.Fate {
		if strings.Contains(sent, statement) {
			falls()
			<-silence
		}
		return testserver.Pass
	})
	t.Cleanup(func() { close(silence) }) // before the link is closed
	return mysqllock.New(open(t, dsn)), fell
}

// await fails the test if nothing comes.
func await[T any](t testing.TB, c <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-bounded(t).Done():
		t.Fatalf("nothing for %v", patience)
	}
	return value
}

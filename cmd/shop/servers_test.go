package main

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// A shop on a server of its own refuses an old schema, and sells once `shop migrate` has run, with a Redis or with
// locks of its own.
func TestServe_servers(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"MySQL": testserver.MySQL, "MariaDB": testserver.MariaDB} {
		t.Run(name, func(t *testing.T) {
			database := []string{"--mysql", dsn(t)}
			with := func(command string, more ...string) []string {
				return append(append([]string{command}, database...), more...)
			}
			secret, ann := withSecret(t), as(t, "ann")
			shop(t, with("serve", slices.Concat(secret, []string{"--listen", "127.0.0.1:0"})...)...).want(t, app.ExitFailed, "shop migrate")
			shop(t, with("audit")...).want(t, app.ExitFailed, "shop migrate")
			shop(t, with("migrate")...).want(t, app.ExitDone, "step")
			shop(t, with("migrate")...).want(t, app.ExitDone, "is up to date")
			shop(t, with("seed", "--sku", "demo-mug", "--units", "2")...).want(t, app.ExitDone, "demo-mug: 2 units")

			alone := startShop(t, slices.Concat(secret, database)...)
			if told := alone.greeting(t); !strings.Contains(told, "--redis") || strings.Contains(told, "The data") {
				t.Errorf("got %s, want it to tell that its locks are its own", told)
			}
			buy(alone.url, "key-1", ann).Want(t, 201)
			both := startShop(t, slices.Concat(secret, database, []string{"--redis", "redis://" + testserver.Redis(t) + "/0"})...)
			buy(both.url, "key-1", ann).Want(t, 201) // a replay
			buy(both.url, "key-2", ann).Want(t, 201)
			buy(both.url, "key-3", ann).Want(t, 409)
			shop(t, with("audit")...).want(t, app.ExitDone, "1 SKU, 2 order lines, 2 units ordered of 2 supplied, 0 oversold: 0 differences")
		})
	}
}

// "the command tries again for --start-timeout, and reports the session with the oldest transaction": behind a
// transaction that has read a table, it gives up, or goes on when the transaction ends.
func TestMigrate_tableInUse(t *testing.T) {
	dsn := testserver.MySQL(t)
	shop(t, "migrate", "--mysql", dsn).want(t, app.ExitDone, "up to date")
	db, err := sql.Open("mysql", dsn)
	testserver.Must(t, err)
	defer db.Close()
	for _, statement := range []string{"ALTER TABLE orders DROP COLUMN first_expiry", "DELETE FROM goose_db_version WHERE version_id = 3"} {
		_, err := db.ExecContext(t.Context(), statement)
		testserver.Must(t, err)
	}
	reader, err := db.BeginTx(t.Context(), nil)
	testserver.Must(t, err)
	var session string
	var orders int
	testserver.Must(t, reader.QueryRowContext(t.Context(), "SELECT CONNECTION_ID(), COUNT(*) FROM orders").Scan(&session, &orders))
	shop(t, "migrate", "--mysql", dsn, "--start-timeout", "1s").want(t, app.ExitFailed, "a table is in use: session "+session+" of root")
	migrate := command(t, nil, "migrate", "--mysql", dsn)
	said := &testserver.LogBuffer{}
	migrate.Stderr = said
	testserver.Must(t, migrate.Start())
	testserver.Until(t, "migrate tries again", patience, func() bool { return said.Has("session " + session) })
	testserver.Must(t, reader.Rollback())
	if err := migrate.Wait(); err != nil {
		t.Errorf("got %v, want a migration\n%s", err, said)
	}
	shop(t, "audit", "--mysql", dsn).want(t, app.ExitDone)
}

// If waiting cannot help, every command reports the error at once, in the server's words.
func TestCommands_refusedByServer(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(context.Context) (*testserver.Server, error){
		"MySQL": testserver.OpenMySQL, "MariaDB": testserver.OpenMariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.Start(t, open)
			_, at, _ := strings.Cut(server.DSN(t), "@")
			address, rest, _ := strings.Cut(at, "/")
			schema, _, _ := strings.Cut(rest, "?")
			sql := func(statements ...string) { testserver.Must(t, server.SQL(t.Context(), statements...)) }
			sql("CREATE USER shop@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON "+schema+".* TO shop@'%'",
				"CREATE USER reader@'%' IDENTIFIED BY 'secret'", "GRANT SELECT ON "+schema+".* TO reader@'%'")
			good, began := "shop:secret@"+at, time.Now()
			refused := func(dsn string, texts map[string]string) {
				t.Helper()
				for _, args := range []string{"migrate", "seed --sku cup --units 1", "audit"} {
					command, _, _ := strings.Cut(args, " ")
					text, wanted := texts[command]
					code := app.ExitFailed
					if !wanted {
						code = app.ExitDone
					}
					r := shop(t, append(strings.Fields(args), "--mysql", dsn)...)
					r.want(t, code, text)
					if strings.Contains(r.stderr, "busy") || strings.Contains(r.stderr, "bad connection") {
						t.Errorf("shop %s: got %s, want the server's words alone", args, r.stderr)
					}
				}
			}
			all := func(text string) map[string]string {
				return map[string]string{"migrate": text, "seed": text, "audit": text}
			}
			refused("shop:wrong@"+at, all("Access denied for user 'shop'"))
			refused("shop:secret@"+address+"/elsewhere", all("Access denied for user 'shop'@'%' to database 'elsewhere'"))
			refused("root:test-only@"+address+"/elsewhere", all("Unknown database 'elsewhere'"))
			stocked(t, good, 5)
			refused("reader:secret@"+at, map[string]string{
				"migrate": "CREATE command denied to user 'reader'", "seed": "INSERT command denied to user 'reader'",
			})

			sql("SET GLOBAL read_only = 1")
			const readOnly = "the database server is read-only"
			refused(good, map[string]string{"migrate": readOnly, "seed": readOnly})
			sql("SET GLOBAL read_only = 0")
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("all took %v, want each at once", took)
			}
		})
	}
}

package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/store"
)

// "A DSN that cannot work (ErrSettings)" is an error at once that "names the
// setting and never shows a password".
func TestMySQL_refusesDSN(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dsn, names string }{
		{"", "empty"},
		{"  ", "empty"},
		{"shop:s3cret@tcp(db:3306)", "database is missing"},
		{"shop:s3cret@tcp(db:3306)/", "database is missing"},
		{"shop:s3cret@tcp(db:3306)/?parseTime=true", "database is missing"},
		{"shop:s3cret@db:3306/shop", "user:password@tcp(host:port)/database"},
		{"shop:s3c/ret@tcp(db:3306)", "user:password@tcp(host:port)/database"},
		{"shop:s3cret@tcp(db:3306/shop", "user:password@tcp(host:port)/database"},
		{"mysql://shop:s3cret@db:3306/shop", "user:password@tcp(host:port)/database"},
		{"shop:s3cret@smoke(db:3306)/shop", "network"},
		{"shop:s3cret@tcp(db:3306)/shop?timeout=5", "parameter timeout"},
		{"shop:s3cret@tcp(db:3306)/shop?charset=utf8mb4&parseTime=maybe", "parameter parseTime"},
		{"shop:s3cret@tcp(db:3306)/shop?loc=Moon%2FCrater", "parameter loc"},
		{"shop:s3cret@tcp(db:3306)/shop?tls=s3cret", "parameter tls"},
		{"shop:s3cret@tcp(db:3306)/shop?strict=true", "parameter strict"},
		{"shop:s3cret@tcp(db:3306)/shop?tls=preferred", "parameter tls=preferred goes on without TLS"},
		{"shop:s3cret@tcp(db:3306)/shop?tls=skip-verify", "parameter tls=skip-verify trusts any server"},
		{"shop:s3cret@tcp(db:3306)/shop?tls=true&allowFallbackToPlaintext=true", "parameter allowFallbackToPlaintext"},
	} {
		_, err := store.MySQL(t.Context(), c.dsn, store.Pool{})
		if !errors.Is(err, store.ErrSettings) {
			t.Errorf("%q: got %v, want ErrSettings", c.dsn, err)
			continue
		}
		if !strings.Contains(err.Error(), c.names) {
			t.Errorf("%q: got %q, want it to name %q", c.dsn, err, c.names)
		}
		for _, secret := range []string{"s3c", "ret@"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q: got %q, which shows the password", c.dsn, err)
			}
		}
	}
}

// "Printing one shows no password."
func TestReadDSN(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dsn, address string
		tls          bool
	}{
		{"shop:s3cret@tcp(db:3307)/shop", "db:3307", false},
		{"shop:s3cret@tcp(db)/shop?tls=false", "db:3306", false},
		{"shop:s3cret@tcp(db)/shop?tls=true", "db:3306", true},
		{"shop:s3cret@unix(/run/mysqld.sock)/shop", "/run/mysqld.sock", false},
	} {
		d, err := store.ReadDSN(c.dsn)
		if err != nil {
			t.Errorf("%s: %v", c.dsn, err)
			continue
		}
		if d.Address() != c.address || d.Database() != "shop" || d.TLS() != c.tls {
			t.Errorf("%s: got %s, %s, TLS %v", c.dsn, d.Address(), d.Database(), d.TLS())
		}
		if !d.HasPassword("s3cret") || d.HasPassword("") {
			t.Errorf("%s: HasPassword does not know the password", c.dsn)
		}
		if printed := fmt.Sprintf("%v %+v %#v", d, d, d); strings.Contains(printed, "s3cret") {
			t.Errorf("%s: got %s, which shows the password", c.dsn, printed)
		}
	}
	if _, err := store.ReadDSN("shop:s3cret@tcp(db)"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v, want an error without the password", err)
	}
}

// "The user's own timeouts, lock wait, TLS and other parameters win; those that
// would change what a statement means are set here, whatever the DSN says."
func TestMySQLConfig(t *testing.T) {
	t.Parallel()
	const users = "timeout=1s&readTimeout=1h&writeTimeout=3s&innodb_lock_wait_timeout=9&tls=true&wait_timeout=60"
	const harmful = "parseTime=false&loc=Local&clientFoundRows=false&charset=gbk&collation=gbk_bin" +
		"&multiStatements=true&rejectReadOnly=false&time_zone=SYSTEM&sql_mode=%27%27&SQL_Mode=%27%27&autocommit=0"
	c, err := store.MySQLConfig("shop:pw@tcp(db)/shop?" + users + "&" + harmful)
	if err != nil {
		t.Fatal(err)
	}
	if c.Timeout != time.Second || c.ReadTimeout != time.Hour || c.WriteTimeout != 3*time.Second ||
		c.Params["innodb_lock_wait_timeout"] != "9" || c.Params["wait_timeout"] != "60" || c.TLS == nil || c.TLS.ServerName != "db" {
		t.Errorf("the user's settings are lost: %+v", c)
	}
	if !c.ParseTime || c.Loc != time.UTC || !c.ClientFoundRows || c.MultiStatements || !c.RejectReadOnly ||
		c.Collation != "utf8mb4_bin" || c.Params["time_zone"] != "'+00:00'" || !strings.Contains(c.Params["sql_mode"], "STRICT") ||
		c.Params["SQL_Mode"] != "" || c.Params["autocommit"] != "1" {
		t.Errorf("harmful settings are kept: %+v", c)
	}
	if dsn := c.FormatDSN(); !strings.Contains(dsn, "charset=utf8mb4&") {
		t.Errorf("got %s, want charset utf8mb4", dsn)
	}

	plain, err := store.MySQLConfig("shop:pw@tcp(db)/shop")
	if err != nil {
		t.Fatal(err)
	}
	if plain.Timeout <= 0 || plain.ReadTimeout <= 0 || plain.WriteTimeout <= 0 || plain.Params["innodb_lock_wait_timeout"] != "5" ||
		plain.Params["wait_timeout"] != "90" {
		t.Errorf("defaults are missing: %+v", plain)
	}
}

// "An answer is waited for as long as it takes, unless the DSN itself says how long."
func TestMigrationConfig(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]time.Duration{"": 0, "?readTimeout=2m": 2 * time.Minute} {
		dsn := "shop:pw@tcp(db)/shop" + params
		c, err := store.MySQLConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.MigrationConfig(c, dsn)
		if err != nil || got.ReadTimeout != want || c.ReadTimeout != 2*time.Minute || c.Params["wait_timeout"] != "90" {
			t.Errorf("%q: got %v, %v, want %v; and for the others %v, %s s, want 2m, 90", params, got.ReadTimeout, err, want, c.ReadTimeout, c.Params["wait_timeout"])
		}
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	for names, pool := range map[string]store.Pool{
		"MaxOpen":     {MaxOpen: -1},
		"MaxIdle":     {MaxIdle: -1},
		"MaxIdleTime": {MaxIdleTime: -1},
		"MaxLifetime": {MaxLifetime: -1},
	} {
		_, err := store.MySQL(t.Context(), "shop:pw@tcp(db)/shop", pool)
		if !errors.Is(err, store.ErrSettings) || !strings.Contains(err.Error(), names) {
			t.Errorf("%+v: got %v, want ErrSettings that names %s", pool, err, names)
		}
	}
}

package app_test

import (
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/auth"
	"example.com/shop/internal/testserver"
)

const (
	plainDSN  = "shop:geheim@tcp(db:3306)/shop"
	labDSN    = "shop:lab-only@tcp(db:3306)/shop"
	tlsDSN    = "shop:geheim@tcp(db:3306)/shop?tls=true"
	plainURL  = "redis://:geheim@cache:6379/0"
	labURL    = "redis://:lab-only@cache:6379/0"
	tlsURL    = "rediss://:geheim@cache:6379/0"
	wantURL   = "redis: want host:port or redis://user:password@host:6379/0"
	plainAddr = "cache:6379"
)

// servers returns valid settings of a shop on MySQL and Redis.
func servers(t *testing.T) app.Settings {
	t.Helper()
	s := app.Default()
	s.MySQL, s.Redis = plainDSN, plainAddr
	s.TokenSecret = secret(t, tokenSecret)
	return s
}

const (
	tokenSecret   = "AwoRGB8mLTQ7QklQV15lbHN6gYiPlp2kq7K5wMfO1dw="
	operatorToken = "BRAbJjE8R1JdaHN+iZSfqrXAy9bh7PcCDRgjLjlET1o="
	paymentsToken = "cGF5bWVudHMgdG9rZW4gb2YgdGhlIHRlc3RzOiAzMiE="
	published     = "ZG9ja2VyLWNvbXBvc2UueW1sIHB1Ymxpc2hlcyBpdC4=" // the operator's token in docker-compose.yml
)

func secret(t *testing.T, text string) auth.Secret {
	t.Helper()
	secret, err := auth.NewSecret(text)
	testserver.Must(t, err)
	return secret
}

func caFile(t *testing.T) string {
	t.Helper()
	return pemFile(t, newCA(t).PEM)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	operated := func(s *app.Settings) {
		s.OperatorListen, s.OperatorToken = "127.0.0.1:0", secret(t, operatorToken)
	}
	for name, c := range map[string]struct {
		change func(*app.Settings)
		want   string // the beginning of the message; empty for valid settings
	}{
		"servers":                {func(*app.Settings) {}, ""},
		"sqlite":                 {func(s *app.Settings) { s.MySQL, s.Data = "", "folder" }, ""},
		"pay-within zero":        {func(s *app.Settings) { s.PayWithin = 0 }, "pay-within: 0s: want 1s"},
		"reconcile soon":         {func(s *app.Settings) { s.ReconcileAt = "soon" }, `reconcile-at: "soon": want a time of day in UTC such as 03:00, or off`},
		"no token secret":        {func(s *app.Settings) { s.TokenSecret = auth.Secret{} }, "token-secret: is missing"},
		"redis, no server":       {func(s *app.Settings) { s.Strategy, s.Redis = "redis", "" }, "strategy: redis: needs a Redis: add --redis"},
		"for-update on SQLite":   {func(s *app.Settings) { s.Strategy, s.MySQL, s.Data = "for-update", "", "folder" }, "strategy: for-update: needs MySQL or MariaDB"},
		"operator":               {operated, ""},
		"operator, no token":     {func(s *app.Settings) { s.OperatorListen = ":0" }, "operator-token: is missing"},
		"operator, no address":   {func(s *app.Settings) { operated(s); s.OperatorListen = "" }, "operator-token, payments-token: are of no use"},
		"listen without port":    {func(s *app.Settings) { s.Listen = "localhost" }, "listen: "},
		"no database":            {func(s *app.Settings) { s.MySQL = "" }, "which database? Add --mysql DSN or --data DIR"},
		"two databases":          {func(s *app.Settings) { s.Data = "folder" }, "--mysql (SHOP_MYSQL) and --data"},
		"redis sentinel":         {func(s *app.Settings) { s.Redis = "redis://cache:26379?master_name=main&addr=b:26379" }, ""},
		"redis cluster=yes":      {func(s *app.Settings) { s.Redis = plainURL + "?cluster=yes" }, "redis: cluster: want true"},
		"redis node, password":   {func(s *app.Settings) { s.Redis = plainURL + "?addr=geheim@b:6379" }, "redis: want HOST:PORT in addr"},
		"redis replica":          {func(s *app.Settings) { s.Redis = plainURL + "?master_name=main&replica_only=true" }, "redis: replica_only"},
		"sentinel, lab password": {func(s *app.Settings) { s.Redis = labURL + "?master_name=main" }, `redis: docker-compose.yml publishes the password "lab-only"`},
		"mysql hosts":            {func(s *app.Settings) { s.MySQL = "shop:geheim@tcp(db1:3306,db2,db3:3306)/shop" }, ""},
		"mysql host twice":       {func(s *app.Settings) { s.MySQL = "shop:geheim@tcp(db1:3306,db1)/shop" }, "mysql: host db1:3306 is named twice"},
		"mysql host missing":     {func(s *app.Settings) { s.MySQL = "shop:geheim@tcp(db1:3306, )/shop" }, "mysql: the DSN, or the value of a parameter in it, cannot be read"},
		"redis no scheme":        {func(s *app.Settings) { s.Redis = "default:geheim@cache:6379" }, wantURL},
		"lock-ttl fraction":      {func(s *app.Settings) { s.LockTTL += time.Microsecond }, "lock-ttl: "},
		"lock-wait = TTL":        {func(s *app.Settings) { s.LockWait = s.LockTTL }, "lock-wait: 10s: want 11s to 15m0s"},
		"redis skip_verify":      {func(s *app.Settings) { s.Redis = tlsURL + "?skip_verify=true" }, "redis: skip_verify"},
		"no mysql CA file":       {func(s *app.Settings) { s.MySQLTLS.CA = "/nowhere" }, "mysql-ca: "},
		"mysql cert alone":       {func(s *app.Settings) { s.MySQLTLS.Cert = "/nowhere" }, "mysql-cert, mysql-key: "},
		"CA without mysql":       {func(s *app.Settings) { s.MySQL, s.Data, s.MySQLTLS.CA = "", "folder", "/nowhere" }, "mysql-ca, "},
		"CA files":               {func(s *app.Settings) { s.MySQLTLS.CA, s.RedisTLS.CA = caFile(t), caFile(t) }, ""},
		"lab password, mysql":    {func(s *app.Settings) { s.MySQL = labDSN }, `mysql: docker-compose.yml publishes the password "lab-only"`},
		"lab password, redis":    {func(s *app.Settings) { s.Redis = labURL }, `redis: docker-compose.yml publishes the password "lab-only"`},
		"lab operator's token":   {func(s *app.Settings) { s.OperatorListen, s.OperatorToken = ":0", secret(t, published) }, "operator-token: docker-compose.yml publishes this token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servers(t)
			c.change(&s)
			err := app.Check(s, app.Hooks{})
			if c.want == "" {
				if err != nil {
					t.Errorf("got %v, want nil", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("got %v, want %s...", err, c.want)
			}
			if strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), tokenSecret) {
				t.Errorf("got %v, want no password in it", err)
			}
		})
	}
}

// Check returns every mistake at once.
func TestCheck_all(t *testing.T) {
	t.Parallel()
	err := app.Check(app.Settings{}, app.Hooks{})
	if err == nil {
		t.Fatal("got nil for empty settings")
	}
	for _, field := range []string{"listen: ", "which database?", "token-secret: ", "lock-ttl: ", "lock-wait: ", "reconcile-at: ", "start-timeout: ", "drain: "} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want %s in it", err, field)
		}
	}
}

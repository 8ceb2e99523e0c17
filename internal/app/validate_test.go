package app_test

import (
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/app"
)

const (
	plainDSN  = "shop:geheim@tcp(db:3306)/shop"
	labDSN    = "shop:lab-only@tcp(db:3306)/shop"
	tlsDSN    = "shop:geheim@tcp(db:3306)/shop?tls=true"
	plainURL  = "redis://:geheim@cache:6379/0"
	labURL    = "redis://:lab-only@cache:6379/0"
	tlsURL    = "rediss://:geheim@cache:6379/0"
	plainAddr = "cache:6379"
)

// servers returns good settings of a shop on servers.
func servers() app.Settings {
	s := app.Default()
	s.MySQL, s.Redis = plainDSN, plainAddr
	return s
}

func TestSettings_Validate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*app.Settings)
		want   string // the beginning of the message; empty for good settings
	}{
		"servers":             {func(*app.Settings) {}, ""},
		"redis URL":           {func(s *app.Settings) { s.Redis = plainURL }, ""},
		"TLS":                 {func(s *app.Settings) { s.MySQL, s.Redis = tlsDSN, tlsURL }, ""},
		"sqlite":              {func(s *app.Settings) { s.MySQL, s.SQLite = "", "shop.db" }, ""},
		"port 0":              {func(s *app.Settings) { s.Listen = ":0" }, ""},
		"lab":                 {func(s *app.Settings) { s.Lab, s.Think = true, 2*time.Millisecond }, ""},
		"lab, lab passwords":  {func(s *app.Settings) { s.Lab, s.MySQL, s.Redis = true, labDSN, labURL }, ""},
		"no listen":           {func(s *app.Settings) { s.Listen = "" }, "listen: "},
		"listen without port": {func(s *app.Settings) { s.Listen = "localhost" }, "listen: "},
		"listen port 70000":   {func(s *app.Settings) { s.Listen = ":70000" }, "listen: "},
		"no database":         {func(s *app.Settings) { s.MySQL = "" }, "mysql: "},
		"two databases":       {func(s *app.Settings) { s.SQLite = "shop.db" }, "mysql and sqlite: "},
		"mysql URL":           {func(s *app.Settings) { s.MySQL = "mysql://shop:geheim@db/shop" }, "mysql: "},
		"mysql cut":           {func(s *app.Settings) { s.MySQL = "shop:geheim@tcp(db:3306" }, "mysql: "},
		"mysql no database":   {func(s *app.Settings) { s.MySQL = "shop:geheim@tcp(db:3306)/" }, "mysql: "},
		"mysql strict":        {func(s *app.Settings) { s.MySQL = plainDSN + "?strict=true" }, "mysql: "},
		"no redis":            {func(s *app.Settings) { s.Redis = "" }, "redis: "},
		"redis without port":  {func(s *app.Settings) { s.Redis = "cache" }, "redis: "},
		"redis URL broken":    {func(s *app.Settings) { s.Redis = "http://:geheim@cache" }, "redis: "},
		"lock-ttl zero":       {func(s *app.Settings) { s.LockTTL = 0 }, "lock-ttl: "},
		"lock-ttl bare":       {func(s *app.Settings) { s.LockTTL = 10 }, "lock-ttl: "},
		"lock-ttl fraction":   {func(s *app.Settings) { s.LockTTL += time.Microsecond }, "lock-ttl: "},
		"lock-wait zero":      {func(s *app.Settings) { s.LockWait = 0 }, "lock-wait: "},
		"lock-wait hour":      {func(s *app.Settings) { s.LockWait = time.Hour }, "lock-wait: "},
		"lock-wait = TTL":     {func(s *app.Settings) { s.LockWait = s.LockTTL }, "lock-wait: 10s: want at least 11s"},
		"lock-wait least":     {func(s *app.Settings) { s.LockWait = s.LockTTL + time.Second }, ""},
		"start-timeout zero":  {func(s *app.Settings) { s.StartTimeout = 0 }, "start-timeout: "},
		"drain negative":      {func(s *app.Settings) { s.DrainTimeout = -1 }, "drain: "},
		"drain-delay":         {func(s *app.Settings) { s.DrainDelay = -1 }, "drain-delay: "},
		"think without lab":   {func(s *app.Settings) { s.Think = time.Millisecond }, "think: "},
		"think too long":      {func(s *app.Settings) { s.Lab, s.Think = true, time.Hour }, "think: "},
		"lab, mysql TLS":      {func(s *app.Settings) { s.Lab, s.MySQL = true, tlsDSN }, "mysql: has TLS"},
		"lab, redis TLS":      {func(s *app.Settings) { s.Lab, s.Redis = true, tlsURL }, "redis: has TLS"},
		"lab password, mysql": {func(s *app.Settings) { s.MySQL = labDSN }, `mysql: its password is "lab-only"`},
		"lab password, redis": {func(s *app.Settings) { s.Redis = labURL }, `redis: its password is "lab-only"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servers()
			c.change(&s)
			err := s.Validate()
			if c.want == "" {
				if err != nil {
					t.Errorf("got %v, want nil", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("got %v, want %s...", err, c.want)
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Errorf("got %v, want no password in it", err)
			}
		})
	}
}

// Every mistake is told at once.
func TestSettings_ValidateAll(t *testing.T) {
	t.Parallel()
	err := app.Settings{}.Validate()
	if err == nil {
		t.Fatal("got nil for empty settings")
	}
	for _, field := range []string{"listen: ", "mysql: ", "redis: ", "lock-ttl: ", "lock-wait: ", "start-timeout: ", "drain: "} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want %s in it", err, field)
		}
	}
}

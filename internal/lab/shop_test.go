package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/testserver"
)

// embedded are the settings of a shop that needs no server.
func embedded(t *testing.T) Settings {
	t.Helper()
	s := Default()
	s.Listen, s.Data = "127.0.0.1:0", t.TempDir()
	return s
}

// start starts a shop with some mugs, which is closed with the test.
func start(t *testing.T, s Settings) *Shop {
	t.Helper()
	if s.MySQL != "" {
		database, err := app.OpenDatabase(t.Context(), s.DatabaseSettings)
		if err != nil {
			t.Fatal(err)
		}
		defer database.Close()
		if _, err := database.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	shop, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := shop.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	shop.supply(t, "mug", 50)
	return shop
}

// call sends a request, such as "GET /v1/skus", and fails unless the answer has the status. headers are "Name: value"
// lines.
func (s *Shop) call(t *testing.T, status int, call, body string, headers ...string) (text string, answered http.Header) {
	t.Helper()
	method, path, _ := strings.Cut(call, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range append(headers, "Content-Type: application/json") {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return "", nil
	}
	defer w.Body.Close()
	read, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode != status {
		t.Errorf("%s %.80q: got status %d %s, %v, want %d", call, headers, w.StatusCode, read, err, status)
	}
	return string(read), w.Header
}

func (s *Shop) supply(t *testing.T, sku string, units int) {
	t.Helper()
	s.call(t, http.StatusCreated, "POST /v1/skus", fmt.Sprintf(`{"sku":%q,"units":%d,"price":{"minor":1250,"currency":"EUR"}}`, sku, units))
}

// buy buys some units of a SKU.
func (s *Shop) buy(t *testing.T, status int, key, sku string, units int, headers ...string) (string, http.Header) {
	t.Helper()
	return s.call(t, status, "POST /v1/orders", fmt.Sprintf(`{"lines":[{"sku":%q,"quantity":%d}]}`, sku, units),
		append(headers, "Idempotency-Key: "+key)...)
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// GET /v1/strategies lists all, with what those that are not available need, and Shop-Strategy sells by
// each of the others.
func (s *Shop) buyByEach(t *testing.T) (missing map[string]string) {
	t.Helper()
	text, _ := s.call(t, http.StatusOK, "GET /v1/strategies", "")
	list := decode[struct {
		Strategies      []struct{ Name, Lock, Take, Lesson, Reason string }
		Database, Redis string
	}](t, text)
	if list.Database == "" || list.Redis == "" || len(list.Strategies) < 20 || list.Strategies[0].Name != "lanes" {
		t.Fatalf("got %s, want all strategies and the servers", text)
	}
	missing = map[string]string{}
	for _, one := range list.Strategies {
		switch sku := "for-" + one.Name; {
		case one.Reason != "":
			missing[one.Name] = one.Reason
			s.supply(t, sku, 1)
			p, _ := s.buy(t, http.StatusBadRequest, "key-"+sku, sku, 1, "Shop-Strategy: "+one.Name)
			if !strings.Contains(p, "/problems/malformed") || !strings.Contains(p, one.Reason) {
				t.Errorf("%s: got %s, want malformed and why", one.Name, p)
			}
		case one.Name != "reentrant": // which gives up after LockWait
			s.supply(t, sku, 1)
			s.buy(t, http.StatusCreated, "key-"+sku, sku, 1, "Shop-Strategy: "+one.Name, "Shop-Think: 1ms")
		}
	}
	return missing
}

// A strategy that needs a server which is not there is listed, with what it needs.
func TestShop_withoutServers(t *testing.T) {
	addrs, stop, err := StartEmbedded(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	s := embedded(t)
	s.Redis = addrs[0]
	missing := start(t, s).buyByEach(t)
	for name, flag := range map[string]string{
		"redlock": "--redlock", "redlock-unguarded": "--redlock", "zookeeper": "--zookeeper", "mysql-lock": "--mysql", "for-update": "--mysql",
		"get-lock": "--mysql", "serializable": "--mysql", "repeatable-read": "--mysql",
	} {
		if !strings.Contains(missing[name], flag) {
			t.Errorf("%s: got the reason %q, want %s in it", name, missing[name], flag)
		}
		delete(missing, name)
	}
	if len(missing) > 0 {
		t.Errorf("not available: %v", missing)
	}
}

// With all servers, every strategy is available.
func TestShop_withAllServers(t *testing.T) {
	s := embedded(t)
	s.MySQL, s.Data = testserver.MySQL(t), ""
	s.ZooKeeper = testserver.ZooKeeper(t)
	if missing := start(t, s).buyByEach(t); len(missing) > 0 {
		t.Errorf("not available: %v", missing)
	}
}

// "waits until it has answered", also where that takes longer than a request may.
func TestShop_lateZooKeeper(t *testing.T) {
	t.Parallel()
	link, answers := testserver.LinkTo(t, testserver.ZooKeeper(t)), make(chan struct{})
	s := embedded(t)
	s.LockTTL = time.Second // and a request may take as long
	s.ZooKeeper = link.Addr
	link.Silence(true, true)
	time.AfterFunc(2*s.LockTTL, func() { link.Heal(); close(answers) })
	shop := start(t, s)
	shop.buy(t, http.StatusCreated, "key", "mug", 1, "Shop-Strategy: zookeeper")
	<-answers
}

// "The answer to a new order, or to one that is sold out, has the steps in the header Shop-Trace."
func TestShop_trace(t *testing.T) {
	t.Parallel()
	s := start(t, embedded(t))
	s.supply(t, "cup", 5)
	times := regexp.MustCompile(`"at":\d{16}\b`)
	for _, c := range []struct {
		key    string
		units  int
		status int
		want   string // with # for each time
	}{
		{"key-1", 2, 201, `[{"step":"begun","at":#},{"step":"read","sku":"cup","units":5,"at":#},` +
			`{"step":"writing","at":#},{"step":"written","sku":"cup","units":3,"at":#},{"step":"committed","at":#}]`},
		{"key-1", 2, 201, ""}, // a replay
		{"key-2", 4, 409, `[{"step":"begun","at":#},{"step":"read","sku":"cup","units":3,"at":#}]`},
		{"key-1", 3, 422, ""},
	} {
		_, header := s.buy(t, c.status, c.key, "cup", c.units, "Shop-Strategy: none")
		if got := times.ReplaceAllString(header.Get("Shop-Trace"), `"at":#`); got != c.want {
			t.Errorf("%s, %d units: Shop-Trace: got  %s\nwant %s", c.key, c.units, got, c.want)
		}
	}
}

// A request is stepped and looked at over HTTP.
func TestShop_recording(t *testing.T) {
	t.Parallel()
	s := start(t, embedded(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.buy(t, http.StatusCreated, "key-1", "mug", 1, "Shop-Strategy: redis", "Shop-Recording: a")
	}()
	var got Recording
	testserver.Until(t, "the request is recorded", time.Minute, func() bool {
		w, err := http.Get(s.URL() + "/v1/recordings/a")
		if err != nil {
			return false
		}
		return w.Body.Close() == nil && w.StatusCode == http.StatusOK
	})
	var stops []string
	for got.State != Ended {
		text, _ := s.call(t, http.StatusOK, "GET /v1/recordings/a?seen="+strconv.Itoa(got.Version), "")
		if got = decode[Recording](t, text); got.State != Stopped {
			continue
		}
		verb, _, _ := strings.Cut(got.Next, " sku:")
		stops = append(stops, verb)
		text, _ = s.call(t, http.StatusOK, "GET /v1/recordings/a/lock", "")
		if is, holds := decode[LockState](t, text), len(stops) > 1; (is.Owner != "") != holds || (is.TTL > 0) != holds {
			t.Errorf("before %s: got lock %+v", got.Next, is)
		}
		move := "step"
		if len(stops) == 3 {
			move = "resume"
		}
		text, _ = s.call(t, http.StatusOK, "POST /v1/recordings/a/"+move, "")
		got = decode[Recording](t, text)
	}
	<-done
	if len(stops) != 3 || stops[0] != "lock" || !strings.HasPrefix(stops[1], "sql SELECT") {
		t.Errorf("got stops %q, want the lock and two statements", stops)
	}
	var steps []string
	for _, e := range got.Events {
		if e.Kind == KindStep {
			steps = append(steps, e.Text+" "+e.Answer)
		}
	}
	want := []string{"begun ", "lock-asked ", "lock-held ", "read 50 units", "writing ", "written ", "committed ", "released "}
	if !slices.Equal(steps, want) {
		t.Errorf("got steps %q, want %q", steps, want)
	}
	for _, bad := range []struct {
		status int
		call   string
	}{
		{404, "GET /v1/recordings/unknown"}, {404, "GET /v1/recordings/unknown/lock"}, {400, "GET /v1/recordings/a?seen=-1"},
		{404, "POST /v1/recordings/unknown/resume"}, {400, "POST /v1/recordings/a/leap"}, {400, "POST /v1/recordings/a/step"},
	} {
		s.call(t, bad.status, bad.call, "")
	}
	s.buy(t, http.StatusBadRequest, "key-2", "mug", 1, "Shop-Recording: a") // a name is used once
}

// "A request that changes something must be of the same origin." "The Host of each request must be an
// address, localhost, or name".
func TestShop_guard(t *testing.T) {
	t.Parallel()
	shop := start(t, embedded(t))
	_, port, _ := net.SplitHostPort(shop.Addr())
	const evil = "http://evil.example"
	for name, c := range map[string]struct {
		call, host, header, value string
		want                      int
	}{
		"address":                    {"POST /v1/skus", "127.0.0.1", "Origin", shop.URL(), 201},
		"localhost":                  {"GET /v1/skus", "localhost", "Origin", "", 200},
		"another name":               {"GET /v1/skus", "evil.example", "Origin", "", 421},
		"another name, its own page": {"POST /v1/skus", "evil.example", "Origin", evil + ":" + port, 421},
		"form of another page":       {"POST /v1/skus", "127.0.0.1", "Origin", evil, 403},
		"no body":                    {"POST /v1/recordings/a/step", "127.0.0.1", "Sec-Fetch-Site", "cross-site", 403},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		sku := `{"sku":"cup","units":1,"price":{"minor":1,"currency":"EUR"}}`
		r, err := http.NewRequestWithContext(t.Context(), method, shop.URL()+path, strings.NewReader(sku))
		testserver.Must(t, err)
		r.Host = net.JoinHostPort(c.host, port)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(c.header, c.value)
		w, err := http.DefaultClient.Do(r)
		testserver.Must(t, err)
		testserver.Must(t, w.Body.Close())
		if w.StatusCode != c.want {
			t.Errorf("%s: got %d, want %d", name, w.StatusCode, c.want)
		}
	}
}

// Headers that are not as they have to be are refused, and sell nothing.
func TestShop_badHeaders(t *testing.T) {
	t.Parallel()
	s := start(t, embedded(t))
	for want, rows := range map[string][][]string{
		"400 malformed": {
			{"Shop-Strategy: hope"}, {"Shop-Strategy: Redis"}, {"Shop-Strategy: " + strings.Repeat("s", 5_000)},
			{"Shop-Think: 2"}, {"Shop-Think: long"}, {"Shop-Think: 9999999999h"}, {"Shop-Think: Infs"}, {"Shop-Think: -1ms"},
			{"Shop-Think: 1001ms"}, {"Shop-Think: 24h"},
		},
		"422 invalid-order": {{"Shop-Buyer: a b"}},
	} {
		code, kind, _ := strings.Cut(want, " ")
		status, _ := strconv.Atoi(code)
		for _, headers := range rows {
			if p, _ := s.buy(t, status, "key", "mug", 1, headers...); !strings.Contains(p, "/problems/"+kind+`"`) {
				t.Errorf("%.80q: got %s, want %s", headers, p, want)
			}
		}
	}
	if text, _ := s.call(t, http.StatusOK, "GET /v1/audit?sku=mug", ""); !strings.Contains(text, `"available":50`) ||
		!strings.Contains(text, `"ok":true`) {
		t.Errorf("got audit %s, want nothing sold", text)
	}
}

// "All errors of the settings, each with the name of its command-line flag." "Servers with TLS are refused".
func TestSettings_Check(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Settings)
		want   string // empty: fine
	}{
		"default":        {func(*Settings) {}, ""},
		"published":      {func(s *Settings) { s.MySQL, s.Data = "shop:lab-only@tcp(db:3306)/shop", "" }, ""},
		"all servers":    {func(s *Settings) { s.Redlock, s.ZooKeeper = []string{"a:1", "b:1", "c:1"}, "a:1,b:1" }, ""},
		"MySQL by TLS":   {func(s *Settings) { s.MySQL, s.Data = "shop@tcp(db:3306)/shop?tls=true", "" }, "mysql: has TLS"},
		"Redis by TLS":   {func(s *Settings) { s.Redis = "rediss://redis:6379" }, "redis: has TLS"},
		"in capitals":    {func(s *Settings) { s.Redis = "REDISS://redis:6379" }, "redis: has TLS"},
		"for-update":     {func(s *Settings) { s.Strategy = "for-update" }, "strategy: for-update: needs MySQL"},
		"Redlock by TLS": {func(s *Settings) { s.Redlock = []string{"rediss://a:1", "b:1", "c:1"} }, "redlock: has TLS"},
		"two of Redlock": {func(s *Settings) { s.Redlock = []string{"a:1", "b:1"} }, "redlock: 2 servers"},
		"no address":     {func(s *Settings) { s.Redlock = []string{"a", "b:1", "c:1"} }, "redlock: "},
		"no port":        {func(s *Settings) { s.ZooKeeper = "a" }, "zookeeper: "},
		"think":          {func(s *Settings) { s.Think = 2 * time.Second }, "think: 2s"},
		"of the shop's":  {func(s *Settings) { s.LockTTL = time.Millisecond }, "lock-ttl: "},
	} {
		s := Default()
		s.Data = "."
		c.change(&s)
		err := s.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// "The Lua source of a command in a recording".
func TestScript(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"EVALSHA release lock:{sku:mug} ATQ4Z2…": "KEEPTTL", "EVALSHA release redlock:sku:mug ATQ4Z2…": "return -1",
		"EVAL compare-and-delete wrong:setex:sku:mug ATQ4Z2…": "GET", "GET lock:{sku:mug}": "", "": "",
	} {
		if got := Script(command); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: got %q, want %q in it", command, got, want)
		}
	}
}

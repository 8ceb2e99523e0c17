package measure

import "testing"

func TestParseMonitor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want seen
		ok   bool
	}{
		{`+1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`, seen{"127.0.0.1:60866", "KEYS"}, true},
		{`+1339518087.877697 [0 [::1]:60866] "ping"`, seen{"[::1]:60866", "PING"}, true},
		{`+1339518090.420270 [0 lua] "get" "x] y"`, seen{}, false},
		{`+OK`, seen{}, false},
	} {
		got, ok := parseMonitor(c.line)
		if ok != c.ok || (ok && got != c.want) {
			t.Errorf("%s: got %v, %v, want %v, %v", c.line, got, ok, c.want, c.ok)
		}
	}
}

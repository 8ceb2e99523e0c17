package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/loadtest/crowd"
	"example.com/shop/loadtest/result"
	"example.com/shop/loadtest/shopclient"
)

func none() result.Strategy {
	return result.Strategy{
		Strategy: shopclient.Strategy{Name: "none", Lesson: "Read, think, write."}, Supplied: 100, Orders: 431, UnitsSold: 431,
		Judgement: result.Judgement{Oversold: 331, Verdict: result.Oversold, Findings: []string{"books: I1 oversold by 331"}, Notes: []string{}},
		Summary: crowd.Summary{
			Acknowledged: 431, Refused: 569, AnswersPerSecond: 1884.7, OrdersPerSecond: 812.3,
			LatencyMS: crowd.Latency{P50: 212.4, P90: 400, P95: 408, P99: 498.6, Max: 530},
		},
	}
}

func redis() result.Strategy {
	return result.Strategy{
		Strategy: shopclient.Strategy{Name: "redis", Designed: true, Lesson: "A lease."}, Supplied: 100, Orders: 100, UnitsSold: 100,
		Judgement: result.Judgement{Verdict: result.Correct, Findings: []string{}, Notes: []string{}},
		Summary: crowd.Summary{
			Acknowledged: 100, Refused: 900, AnswersPerSecond: 1400, OrdersPerSecond: 140,
			LatencyMS: crowd.Latency{P50: 9.44, P90: 700, P95: 708, P99: 12345, Max: 13000},
		},
	}
}

func TestScreen_table(t *testing.T) {
	t.Parallel()
	got := screen{}.table(result.Report{Strategies: []result.Strategy{none(), redis()}})
	want := `
strategy  orders  oversold  refused  answers/s  p50 ms  p95 ms  p99 ms  verdict
────────────────────────────────────────────────────────────────────────────────
none         431       331      569      1,885     212     408     499  oversold
redis        100         0      900      1,400     9.4     708  12,345  correct
`[1:]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	// "Columns of zeros are left out. A table that is wider than 80 columns continues below."
	long := none()
	long.Name, long.Undersold, long.Errors, long.Verdict = "release-before-commit", 99_900, 100_000, result.Inconsistent
	got = screen{lang: "zh"}.table(result.Report{Strategies: []result.Strategy{long, redis()}})
	want = `
策略                   订单  超卖    少卖  拒绝     错误  响应/秒  p50 ms
─────────────────────────────────────────────────────────────────────────
release-before-commit   431   331  99,900   569  100,000    1,885     212
redis                   100     0       0   900        0    1,400     9.4

策略                   p95 ms  p99 ms  结论
─────────────────────────────────────────────────
release-before-commit     408     499  账目不一致
redis                     708  12,345  正确
`[1:]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table that is too wide (-want +got):\n%s", diff)
	}
	lucky := none()
	lucky.Verdict, lucky.Oversold = result.Correct, 0
	if got := (screen{colour: true}).table(result.Report{Strategies: []result.Strategy{lucky}}); !strings.HasSuffix(got, " not caught\n") {
		t.Errorf("got %q, want \"not caught\" at its end, without colour", got)
	}
}

func TestScreen_explanation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(wrong, right *result.Strategy)
		want   []string
	}{
		"as it should be": {
			func(_, _ *result.Strategy) {},
			[]string{
				"none   Read, think, write.\n       Sold 431 units of 100: 331 of them cannot be delivered.\n\n",
				"redis  A lease.\n       Sold 100 units of 100, none twice, and turned 900 buyers away.\n\n",
				"As expected, redis was correct.\n",
			},
		},
		"a lucky one": {
			func(wrong, _ *result.Strategy) { wrong.Verdict, wrong.UnitsSold = result.Correct, 100 },
			[]string{"- not caught in this race; caught by: go run ./loadtest step none\n"},
		},
		"a broken promise is explained": {
			func(_, right *result.Strategy) {
				right.Verdict, right.Oversold, right.UnitsSold = result.Oversold, 1, 101
				right.Findings = []string{"books: I1 oversold by 1"}
			},
			[]string{
				"Sold 101 units of 100: 1 of them cannot be delivered.", "- books: I1 oversold by 1",
				"Designed to be correct and was not: redis.\n",
			},
		},
		"undersold": {
			func(_, right *result.Strategy) {
				right.Verdict, right.Undersold, right.UnitsSold, right.Errors = result.Undersold, 5, 95, 5
			},
			[]string{"Sold 95 units of 100 and let 905 buyers go without one while units were\n       left."},
		},
		"wrong and without an answer": {
			func(wrong, right *result.Strategy) { wrong.Designed, wrong.Errors, right.Errors = true, 7, 1 },
			[]string{
				"turned 901 buyers away",
				"\nDesigned to be correct and was not: none, redis (which left 1 buyer without an answer).\n",
			},
		},
		"nothing that is designed to be correct": {
			func(_, right *result.Strategy) { right.Designed = false },
			[]string{"None of these strategies is designed to be correct."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong, right := none(), redis()
			c.change(&wrong, &right)
			got := screen{}.explanation(result.Report{Strategies: []result.Strategy{wrong, right}})
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("got:\n%s\nwant in it: %q", got, want)
				}
			}
		})
	}
	r := result.Report{Strategies: []result.Strategy{redis()}, NotRun: []result.NotRun{{Name: "zookeeper", Reason: "it needs a ZooKeeper"}}}
	want := "\nNot run:\nzookeeper  it needs a ZooKeeper.\n\nAs expected, redis was correct.\n"
	if got := (screen{}).explanation(r); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want at its end %q", got, want)
	}
}

// Only terminals get colour, unless NO_COLOR is set or the terminal is dumb. On a dumb terminal, progress is lines.
func Test_newScreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env          map[string]string
		terminal     bool
		colour, live bool
	}{
		"a terminal":     {nil, true, true, true},
		"a file":         {nil, false, false, false},
		"NO_COLOR":       {map[string]string{"NO_COLOR": "1"}, true, false, true},
		"NO_COLOR empty": {map[string]string{"NO_COLOR": ""}, true, true, true},
		"TERM=dumb":      {map[string]string{"TERM": "dumb"}, true, false, false},
	} {
		e := environment{getenv: func(key string) string { return c.env[key] }, terminal: func(io.Writer) bool { return c.terminal }}
		if s := newScreen(e, ""); s.colour != c.colour || s.live != c.live {
			t.Errorf("%s: got colour %v, live %v, want %v, %v", name, s.colour, s.live, c.colour, c.live)
		}
	}
}

package redlock

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// "a late release frees nothing that a later request took", in whatever order a
// node hears of the owner's requests.
func TestScripts_LateRequests(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer func() { _ = client.Close() }()
	for i, step := range []struct {
		script *redis.Script
		owner  string
		number int
		want   bool
	}{
		{acquireScript, "me", 9, true},
		{releaseScript, "me", 10, true},
		{acquireScript, "me", 9, true},  // late, and nobody wants it
		{acquireScript, "me", 11, true}, // finds that vote, which is this one's now
		{releaseScript, "me", 10, false},
		{acquireScript, "me", 9, true}, // again: the vote stays the latest one's
		{releaseScript, "me", 10, false},
		{renewScript, "me", 12, true},
		{acquireScript, "other", 13, false},
		{renewScript, "other", 13, false},
		{releaseScript, "other", 13, false},
		{releaseScript, "me", 12, true},
		{acquireScript, "other", 1, true}, // numbers of two owners are not compared
	} {
		got, err := step.script.Run(t.Context(), client, []string{"key"}, step.owner, 60_000, step.number).Bool()
		if err != nil || got != step.want {
			t.Errorf("step %d: %v, %v; want %v", i, got, err, step.want)
		}
	}
}

// "What the script with this hash is for; empty if it is none of this package's."
func TestScriptName(t *testing.T) {
	t.Parallel()
	for script, want := range map[*redis.Script]string{
		acquireScript: "acquire", renewScript: "renew", releaseScript: "release", redis.NewScript("return 1"): "",
	} {
		if got := ScriptName(script.Hash()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

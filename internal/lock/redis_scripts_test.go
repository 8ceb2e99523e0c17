package lock

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

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

package auth

import "testing"

// "One of the two maps": what is asked for stays, and there never is more.
func TestKnown(t *testing.T) {
	t.Parallel()
	var k known
	mine, c := sumOf("mine"), &claims{subject: "ann"}
	k.add(mine, c)
	for i := range 5 * maxKnown {
		k.add(sumOf(string(rune(i))), &claims{})
		if n := len(k.now) + len(k.old); n > 2*maxKnown {
			t.Fatalf("got %d tokens, want at most %d", n, 2*maxKnown)
		}
		if k.get(mine) != c {
			t.Fatalf("forgotten after %d others, though it was asked for", i)
		}
	}
	idle := sumOf("idle")
	k.add(idle, c)
	for i := range 3 * maxKnown {
		k.add(sumOf(string(rune(i))), &claims{})
	}
	if k.get(idle) != nil {
		t.Error("a token that nobody asked for was never forgotten")
	}
}

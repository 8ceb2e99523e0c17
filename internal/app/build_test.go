package app

import (
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	t.Parallel()
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	clean := debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	for _, c := range []struct {
		settings []debug.BuildSetting
		commit   string
	}{
		{nil, ""},
		{[]debug.BuildSetting{revision, clean}, "abc"},
		{[]debug.BuildSetting{changed, revision}, "abc+changes"},
		{[]debug.BuildSetting{changed}, ""},
	} {
		got := buildOf(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: c.settings})
		if want := (Build{Version: "v1.2.3", Commit: c.commit}); got != want {
			t.Errorf("%v: got %+v, want %+v", c.settings, got, want)
		}
	}
}

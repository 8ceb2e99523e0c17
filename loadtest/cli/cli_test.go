package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/shop/loadtest/cleanup"
	"example.com/shop/loadtest/cli"
)

type flags struct {
	Buyers int `default:"5" help:"How many."`
}

func TestProgram_Parse(t *testing.T) {
	t.Parallel()
	program := cli.Program{Name: "sell", About: "Sells.", Lesson: "\nExamples: sell\n"}
	for _, c := range []struct {
		args   []string
		err    error
		buyers int
		shown  string // on stdout
	}{
		{nil, nil, 5, ""},
		{[]string{"--buyers", "7"}, nil, 7, ""},
		{[]string{"--buyers", "many"}, cli.ErrUsage, 0, ""},
		{[]string{"--luck"}, cli.ErrUsage, 5, ""},
		{[]string{"--help"}, cli.ErrHelpShown, 0, "\nExamples: sell\n"},
	} {
		var f flags
		var stdout, stderr bytes.Buffer
		err := program.Parse(&f, c.args, &stdout, &stderr)
		if !errors.Is(err, c.err) || err == nil && f.Buyers != c.buyers {
			t.Errorf("%v: got %+v, %v, want %d, %v", c.args, f, err, c.buyers, c.err)
		}
		if !strings.HasSuffix(stdout.String(), c.shown) || stdout.Len() > 0 && c.shown == "" {
			t.Errorf("%v: stdout: got %q, want %q at its end", c.args, stdout.String(), c.shown)
		}
	}
}

// "Tells why if it is not OK."
func TestExit(t *testing.T) {
	t.Parallel()
	running, stopped := t.Context(), canceled(t)
	for _, c := range []struct {
		ctx  context.Context
		err  error
		code int
		text string
	}{
		{running, nil, cli.OK, ""},
		{running, cli.ErrHelpShown, cli.OK, ""},
		{stopped, fmt.Errorf("%w: --x", cli.ErrUsage), cli.Usage, "sell: usage: --x\nTry: go run ./sell --help\n"},
		{running, errors.New("no luck"), cli.Broken, "sell: no luck\n"},
		{stopped, context.Canceled, cli.Broken, "sell: interrupted; what it started is stopped and removed\n"},
		{stopped, cleanup.Join(context.Canceled, errors.New("it runs on")), cli.Broken, "sell: interrupted; clean-up failed: it runs on\n"},
	} {
		var stderr bytes.Buffer
		if code := cli.Exit(c.ctx, "sell", "./sell", c.err, &stderr); code != c.code || stderr.String() != c.text {
			t.Errorf("%v: got %d, %q, want %d, %q", c.err, code, stderr.String(), c.code, c.text)
		}
	}
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9/logging"
)

// Exit codes of Main.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitUnread = 141 // the reader has ended, as in: shop --help | head. SIGPIPE has the same code.
)

// UsageError is a mistake on the command line or in the environment.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

func (e UsageError) Unwrap() error { return e.Err }

// ErrPrinted means that a command has failed and has printed the reason.
var ErrPrinted = errors.New("failed")

// UntilSignal returns a context that ends with the first SIGINT, SIGTERM or other given signal. A second signal kills
// the process, except within 100 ms: timeout(1) signals the process and then its group.
func UntilSignal(others ...os.Signal) context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), append(others, os.Interrupt, syscall.SIGTERM)...)
	context.AfterFunc(ctx, func() {
		time.Sleep(100 * time.Millisecond)
		stop()
	})
	return ctx
}

// Main is the main function of shop, lab and loadtest. It parses the command line and the environment into line, a
// struct for kong, calls run, and returns the exit code. It prints errors to standard error, or to the writer of
// kong.Writers. The Run methods of commands get ctx. Empty variables are ignored: compose files pass a variable that
// is not set as an empty one.
func Main(ctx context.Context, name, about string, args []string, line any,
	run func(*kong.Context) error, options ...kong.Option,
) (code int) {
	logging.Disable() // go-redis has one logger for the whole process, and also returns the errors that it logs
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); value == "" && strings.HasPrefix(name, "SHOP_") {
			_ = os.Unsetenv(name)
		}
	}
	printed := false // by --help or --version
	parser := kong.Must(line, append(options, kong.Name(name), kong.Description(about),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Exit(func(int) { printed = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}), kong.Vars{"version": versionOf(name)})...)
	parsed, err := parser.Parse(args)
	if printed {
		return ExitDone
	}
	if err == nil {
		err = refuseEmpty(parsed)
	}
	if err != nil {
		err = UsageError{Err: err}
	} else {
		err = run(parsed)
	}
	switch _, ofFile := errors.AsType[*fs.PathError](err); {
	case err == nil:
		return ExitDone
	case ofFile && errors.Is(err, syscall.EPIPE):
		return ExitUnread
	case errors.As(err, new(UsageError)):
		fmt.Fprintf(parser.Stderr, "%s: %v\nSee `%s --help`.\n", name, err, selected(err, parsed, name))
		return ExitUsage
	case errors.Is(err, ErrPrinted):
		return ExitFailed
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		err = errors.New("interrupted")
	}
	fmt.Fprintf(parser.Stderr, "%s: %v\n", name, err)
	return ExitFailed
}

// refuseEmpty refuses an empty value on the command line. Otherwise a script with an unset variable could start a shop
// that shares no locks with the others.
func refuseEmpty(parsed *kong.Context) error {
	for _, path := range parsed.Path {
		value := path.Positional
		if path.Flag != nil {
			value = path.Flag.Value
		}
		if value == nil {
			continue
		}
		list, several := value.Target.Interface().([]string)
		if value.Target.Kind() == reflect.String && value.Target.Len() == 0 || several && (len(list) == 0 || slices.Contains(list, "")) {
			return fmt.Errorf("%s: is empty: give a value, or leave it out", value.ShortSummary())
		}
	}
	return nil
}

// selected returns the program's name and the command, even if the rest of the command line is wrong.
func selected(err error, parsed *kong.Context, name string) string {
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		parsed = wrong.Context
	}
	if parsed != nil && parsed.Selected() != nil {
		return parsed.Selected().FullPath()
	}
	return name
}

// Running is a started shop: see the methods of Shop.
type Running interface {
	Done() <-chan struct{}
	Shutdown(ctx context.Context) error
}

// Serve starts a shop and serves until ctx ends or the shop fails. It makes the data folder. If there is no database,
// it makes a temporary data folder, which is removed at the end.
func Serve(ctx context.Context, s *Settings, start func(temporary bool) (Running, error)) (err error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // the heap of a shop is small: fewer collections are worth the memory
	}
	temporary := s.MySQL == "" && s.Data == ""
	if temporary {
		if s.Data, err = os.MkdirTemp("", "shop-"); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.Data)) }()
	} else if s.Data != "" {
		if err := os.MkdirAll(s.Data, 0o750); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	shop, err := start(temporary)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-shop.Done():
	}
	return shop.Shutdown(context.WithoutCancel(ctx)) // --drain limits it
}

// LogSettings choose the format and the level of a program's log.
type LogSettings struct {
	LogFormat string     `env:"SHOP_LOG_FORMAT" enum:"text,json" default:"text" help:"Format of the log: text or json."`
	LogLevel  slog.Level `env:"SHOP_LOG_LEVEL" default:"info" help:"Level of the log: debug, info, warn or error."`
}

// Logger returns a logger that writes to w.
func (s LogSettings) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// ThisBuild returns the version and commit of the running program, each empty if unknown: `go run` records no commit.
// The version ends in "+dirty" if the program was built from changed files.
func ThisBuild() (version, commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	return info.Main.Version, commit
}

// versionOf returns the text that --version prints.
func versionOf(program string) string {
	version, commit := ThisBuild()
	return fmt.Sprintf("%s %s, commit %s, %s %s/%s",
		program, cmp.Or(version, "unknown"), cmp.Or(commit, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

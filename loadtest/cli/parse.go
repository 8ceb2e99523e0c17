package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

var (
	// ErrUsage means that the flags ask for something that cannot be.
	ErrUsage = errors.New("usage")

	// ErrHelpShown means that the user asked for help and got it.
	ErrHelpShown = errors.New("help was shown")
)

// Program is one that is called with flags, or a command of one.
type Program struct {
	Name   string // in its help
	About  string // what stands above the flags in its help
	Lesson string // what stands below them
}

// Parse reads args into flags, a struct as kong has them. It returns ErrHelpShown,
// or an ErrUsage that names the flag that is wrong.
func (p Program) Parse(flags any, args []string, stdout, stderr io.Writer) error {
	shown := false
	parser, err := kong.New(flags,
		kong.Name(p.Name),
		kong.Description(p.About),
		kong.Writers(stdout, stderr),
		kong.Help(p.help),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
		kong.Exit(func(int) { shown = true }),
	)
	if err != nil {
		return err
	}
	_, err = parser.Parse(args)
	switch {
	case shown:
		return ErrHelpShown
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return nil
}

func (p Program) help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := io.WriteString(ctx.Stdout, p.Lesson)
	return err
}

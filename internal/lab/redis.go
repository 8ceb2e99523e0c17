package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/lock"
	"example.com/shop/internal/observe"
	"example.com/shop/internal/order/strategy"
)

// Redis returns a hook for a client whose commands are to be recorded.
func (r *Recorder) Redis() redis.Hook {
	return redisHook{r, slices.Concat(lock.Scripts(), redsyncScripts(), strategy.Scripts(), []lock.Script{compareScript})}
}

type redisHook struct {
	recorder *Recorder
	scripts  []lock.Script // which are recorded by their names
}

// DialHook implements redis.Hook. Connections belong to no request.
func (h redisHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		answer, err := h.note(ctx, c)
		if err != nil {
			return err
		}
		err = next(ctx, c)
		answer(err)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook. Commands of requests that have died are left out.
func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		var sent []redis.Cmder
		var answers []func(error)
		for _, c := range all {
			answer, err := h.note(ctx, c)
			if err != nil {
				c.SetErr(err)
				continue
			}
			sent, answers = append(sent, c), append(answers, answer)
		}
		if len(sent) == 0 {
			return ErrDied
		}
		err := next(ctx, sent)
		for i, c := range sent {
			answers[i](c.Err())
		}
		return err
	}
}

// note records a command, and returns a function that adds its answer. An error means that the command may not be sent.
func (h redisHook) note(ctx context.Context, c redis.Cmder) (answer func(error), err error) {
	all, own := h.recorder.of(ctx, c.Args()...)
	if all == nil || observe.OpensConnection(c) {
		return func(error) {}, nil
	}
	add, err := all.command(ctx, KindRedis, h.text(c), own)
	return func(err error) { add(redisAnswer(c, err)) }, err
}

// text is a command on one line: of a script its name, its first key, and the owner.
func (h redisHook) text(c redis.Cmder) string {
	args, words := c.Args(), []string{strings.ToUpper(c.Name())}
	if i := h.script(c); i >= 0 {
		n, _ := args[2].(int) // of keys
		owner := ""
		for _, arg := range args[3+n:] { // the first that is no number
			owner = fmt.Sprint(arg)
			if _, err := strconv.ParseInt(owner, 10, 64); err != nil {
				break
			}
		}
		words = append(words, h.scripts[i].Name, short(args[3]), short(owner[strings.LastIndex(owner, ":")+1:]))
		return strings.Join(words, " ")
	}
	const most = 7
	for _, argument := range args[1:min(len(args), most)] {
		words = append(words, short(argument))
	}
	if len(args) > most {
		words = append(words, "…")
	}
	return strings.Join(words, " ")
}

// script returns the index of the script that a command runs: EVALSHA hash n key ... argument ..., or
// EVAL with the script itself; -1 for other commands.
func (h redisHook) script(c redis.Cmder) int {
	if c.Name() != "eval" && c.Name() != "evalsha" {
		return -1
	}
	hash := fmt.Sprint(c.Args()[1])
	if c.Name() == "eval" {
		hash = redis.NewScript(hash).Hash()
	}
	return slices.IndexFunc(h.scripts, func(s lock.Script) bool { return s.Hash() == hash })
}

const wide = 48 // bytes of a value that are shown, also of a key

// short is a value on one line. What has no structure, a hash or the random name of an owner, is cut to its first few
// bytes, and the ID of an order, which begins with the time, to its last.
func short(value any) string {
	switch v := value.(type) {
	case []byte:
		value = string(v)
	case time.Time:
		value = v.UTC().Format(time.DateTime + ".000")
	}
	text := strings.Join(strings.Fields(fmt.Sprint(value)), " ")
	const few = 6
	if of := text[:strings.LastIndex(text, ":")+1]; uuid.Validate(text[len(of):]) == nil {
		return of + "…" + text[len(text)-few:]
	}
	if len(text) >= 20 && !strings.ContainsAny(text, ":-. ") {
		return text[:few] + "…"
	}
	if len(text) > wide {
		return text[:wide-1] + "…"
	}
	return text
}

func redisAnswer(c redis.Cmder, err error) string {
	switch {
	case errors.Is(err, redis.Nil):
		return "nil"
	case err != nil:
		return short(err)
	}
	switch c := c.(type) {
	case *redis.Cmd:
		return short(c.Val())
	case interface{ Val() string }: // StringCmd, StatusCmd
		return short(c.Val())
	case *redis.IntCmd:
		return short(c.Val())
	case *redis.BoolCmd:
		return short(c.Val())
	}
	return "OK"
}

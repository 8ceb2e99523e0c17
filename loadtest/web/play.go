package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	teaching "example.com/shop/internal/lab"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/step"
)

// lessons are all lessons, with the reason why one cannot be played here.
func (s *server) lessons(*http.Request) (any, error) {
	type lesson struct {
		step.Lesson
		Missing string `json:"missing,omitempty"`
	}
	all := []lesson{}
	for _, l := range s.lab.Lessons {
		strategy := s.lab.Strategies[slices.IndexFunc(s.lab.Strategies, func(by shopclient.Strategy) bool { return by.Name == l.Strategy() })]
		all = append(all, lesson{l, strategy.Reason})
	}
	return all, nil
}

// lesson answers with the recording of a lesson. A lesson is played once.
func (s *server) lesson(_ context.Context, asked struct {
	Name string `json:"name"`
}) (any, error) {
	i := slices.IndexFunc(s.lab.Lessons, func(l step.Lesson) bool { return l.Name == asked.Name })
	if i < 0 {
		return nil, &InputError{Text: "there is no such lesson", status: http.StatusNotFound}
	}
	return s.record(s.ctx, s.lab.Lessons[i]) //nolint:contextcheck // others may wait for it, too
}

func (s *server) record(ctx context.Context, l step.Lesson) (any, error) {
	if kept, known := s.played.Load(l.Name); known {
		return kept, nil
	}
	recording, err, _ := s.playing.Do(l.Name, func() (any, error) {
		r, err := s.lab.Record(ctx, l)
		if err == nil {
			s.played.Store(l.Name, r)
		}
		return r, err
	})
	return played(recording, err)
}

// playAhead plays all lessons before they are asked for, while nothing else is going on.
func (s *server) playAhead(ctx context.Context) {
	for _, l := range s.lab.Lessons {
		for s.busy.Load() && shopclient.Pause(ctx, eventPause) {
		}
		if ctx.Err() != nil {
			return
		}
		_, _ = s.record(ctx, l) // a request for the lesson gets the error
	}
}

// schedule plays a schedule as far as its name says, which takes a moment. It ends with the request.
func (s *server) schedule(ctx context.Context, asked struct {
	Name  string `json:"name"`
	Loose bool   `json:"loose"`
}) (any, error) {
	now, err := s.lab.Position(ctx, asked.Name, asked.Loose)
	now.Readable()
	return played(now, err)
}

func played(what any, err error) (any, error) {
	if errors.Is(err, step.ErrSchedule) {
		return nil, &InputError{Text: err.Error()}
	} else if err != nil {
		return nil, fmt.Errorf("it could not be played: %w", err)
	}
	return what, nil
}

// exploring is a line that explore sends: its progress or, in the last line, its result.
type exploring struct {
	Waiting bool   `json:"waiting,omitempty"` // for a run, or another's schedules
	Played  int    `json:"played"`
	Todo    int    `json:"todo"`            // at least
	Found   any    `json:"found,omitempty"` // a step.Explored
	Problem string `json:"problem,omitempty"`
}

// explore plays all schedules of a strategy, which takes seconds, and sends its progress as lines of
// JSON. It ends with the request.
func (s *server) explore(w http.ResponseWriter, r *http.Request) {
	s.work.Add(1)
	defer s.work.Done()
	asked, err := decode[struct {
		Strategy string `json:"strategy"`
		Units    int64  `json:"units"`
		Crash    bool   `json:"crash"`
	}](w, r)
	if err != nil {
		answer(w, 0, nil, err)
		return
	}
	within := step.DefaultBounds()
	within.Units, within.Buyers, within.Crash = asked.Units, int(asked.Units)+1, asked.Crash
	if asked.Units < 1 || asked.Units > 2 {
		answer(w, 0, nil, &InputError{Text: "want 1 or 2 units"})
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	send := func(line exploring) {
		_ = json.NewEncoder(w).Encode(line) // a client that went away ends the request
		_ = http.NewResponseController(w).Flush()
	}
	send(s.found(r.Context(), asked.Strategy, within, send))
}

// found plays all schedules once and returns the result. On the way, it sends its progress.
func (s *server) found(ctx context.Context, strategy string, within step.Bounds, send func(exploring)) exploring {
	key := fmt.Sprint(strategy, within)
	if kept, known := s.played.Load(key); known {
		return exploring{Found: kept}
	}
	for !s.busy.CompareAndSwap(false, true) {
		if send(exploring{Waiting: true}); !shopclient.Pause(ctx, eventPause) {
			return exploring{}
		}
	}
	defer s.busy.Store(false)
	var sent time.Time
	all, err := played(s.lab.Explore(ctx, strategy, within, func(played, todo int) {
		if time.Since(sent) > eventPause {
			sent = time.Now()
			send(exploring{Played: played, Todo: todo})
		}
	}))
	if err != nil {
		return exploring{Problem: err.Error()}
	}
	s.played.Store(key, all)
	return exploring{Found: all}
}

// source is a file whose lines a Position names.
func source(r *http.Request) (any, error) {
	text, err := teaching.Source(r.PathValue("path"))
	if err != nil {
		return nil, &InputError{Text: "only the files of strategies, batches and wrong locks are shown", status: http.StatusNotFound}
	}
	return file{kind: plainText, content: text}, nil
}

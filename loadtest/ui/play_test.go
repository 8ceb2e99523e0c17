package ui

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"example.com/shop/loadtest/steps"
)

func TestServer_play(t *testing.T) {
	t.Parallel()
	s := open(t, fakeLab{play: func(_ context.Context, strategy, scenario string) (steps.Play, error) {
		if strategy == "redis" {
			return steps.Play{}, errors.New("no disk")
		}
		return steps.Play{Strategy: strategy, Scenario: scenario, Wrong: 2}, nil
	}})
	tests := []struct {
		name, body string
		status     int
		want       string
	}{
		{"a play", `{"strategy":"none","scenario":"lost-update"}`, 200, `"scenario":"lost-update"`},
		{"does not apply", `{"strategy":"none","scenario":"crash"}`, 422, `{"field":"play-scenario","text":"it has no lock"}`},
		{"no scenario", `{"strategy":"none","scenario":""}`, 422, `"play-scenario"`},
		{"no strategy", `{"scenario":"crash"}`, 422, `"play-strategy"`},
		{"lacks a server", `{"strategy":"zookeeper","scenario":"crash"}`, 422, `it needs a ZooKeeper`},
		{"could not be played", `{"strategy":"redis","scenario":"crash"}`, 500, `it could not be played: no disk`},
	}
	for _, tt := range tests {
		if status, body := s.ask(t, http.MethodPost, "/play", tt.body); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: got %d %s, want %d and %s", tt.name, status, body, tt.status, tt.want)
		}
	}
}

// doc.go: "One run is held at a time, or one scenario played".
func TestServer_play_is_alone(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	s := open(t, fakeLab{race: oversells, play: func(context.Context, string, string) (steps.Play, error) {
		close(begun)
		<-end
		return steps.Play{}, nil
	}})
	played := make(chan int)
	go func() {
		status, _ := s.ask(t, http.MethodPost, "/play", `{"strategy":"none","scenario":"lost-update"}`)
		played <- status
	}()
	<-begun
	for _, second := range [][2]string{{"/run", choice}, {"/play", `{"strategy":"redis","scenario":"crash"}`}} {
		if status, body := s.ask(t, http.MethodPost, second[0], second[1]); status != http.StatusConflict {
			t.Errorf("%s meanwhile: got %d %s, want 409", second[0], status, body)
		}
	}
	close(end)
	if status := <-played; status != http.StatusOK {
		t.Errorf("play: got %d, want 200", status)
	}
	if status, body := s.ask(t, http.MethodPost, "/run", choice); status != http.StatusAccepted {
		t.Errorf("afterwards: got %d %s, want 202", status, body)
	}
	s.finish(t)
}

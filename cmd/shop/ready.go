package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

type readyCommand struct {
	URL     string        `name:"url" default:"http://127.0.0.1:8080" help:"Where the shop is." variable:"SHOP_URL"`
	Timeout time.Duration `default:"5s" help:"How long to wait for its answer."`
}

// Help is shown below the flags.
func (readyCommand) Help() string {
	return `For the health check of a container that has no curl.

Example:
  shop ready --url http://127.0.0.1:8080`
}

// Run asks /readyz.
func (r *readyCommand) Run(ctx context.Context, p *program) error {
	base, err := url.Parse(r.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return usage("ready", fmt.Errorf("--url %q: want a URL such as http://127.0.0.1:8080", r.URL))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("readyz").String(), nil)
	if err != nil {
		return usage("ready", err)
	}
	// Without proxies: the question is about this very instance.
	client := &http.Client{Timeout: r.Timeout, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: status %d: %w", answer.StatusCode, reason(answer.Body))
	}
	fmt.Fprintln(p.stdout, "ready")
	return nil
}

// reason returns the detail of a problem.
func reason(body io.Reader) error {
	var problem struct {
		Detail string `json:"detail"`
	}
	err := json.NewDecoder(io.LimitReader(body, 1<<16)).Decode(&problem)
	if err != nil || problem.Detail == "" {
		return errors.New("no reason given")
	}
	return errors.New(problem.Detail)
}

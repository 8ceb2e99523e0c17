package ui

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"slices"

	"example.com/shop/loadtest/report/page"
	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/steps"
)

//go:embed home.html
var homeSource string

// group is a heading of the form and the strategies below it.
type group struct {
	Title      string
	Strategies []option
}

type option struct {
	shopclient.Strategy
	Chosen bool
}

// scenario is what can be played. Excuses say by strategy why it does not apply, and
// Own is which strategies fail in it.
type scenario struct {
	steps.Scenario
	Excuses string // JSON
	Own     string // JSON
}

func (s *server) scenarios() ([]scenario, error) {
	var all []scenario
	own := steps.Failures()
	for _, what := range s.lab.Scenarios() {
		excuses, fails := map[string]string{}, []string{}
		for _, how := range s.lab.Strategies() {
			if why := s.lab.Excuse(how, what); why != "" {
				excuses[how.Name] = why
			}
			if own[how.Name] == what.Name {
				fails = append(fails, how.Name)
			}
		}
		excused, err := json.Marshal(excuses)
		if err != nil {
			return nil, err
		}
		failed, err := json.Marshal(fails)
		if err != nil {
			return nil, err
		}
		all = append(all, scenario{what, string(excused), string(failed)})
	}
	return all, nil
}

// home is the page as it is before any script has run.
func (s *server) home() ([]byte, error) {
	t, err := template.New("home").Parse(homeSource)
	if err != nil {
		return nil, err
	}
	var patterns, home bytes.Buffer
	if err := page.WritePatterns(&patterns); err != nil {
		return nil, err
	}
	scenarios, err := s.scenarios()
	if err != nil {
		return nil, err
	}
	usual := s.lab.Usual()
	err = t.Execute(&home, struct {
		Patterns  template.HTML
		Groups    []group
		Missing   []shopclient.Strategy
		Usual     Choice
		Scenarios []scenario
	}{template.HTML(patterns.String()), groups(s.lab.Strategies(), usual.Strategies), missing(s.lab.Strategies()), usual, scenarios}) //nolint:gosec // a fixed part of our own page
	return home.Bytes(), err
}

func groups(table []shopclient.Strategy, chosen []string) []group {
	right, wrong := group{Title: "Promise to be correct"}, group{Title: "Promise nothing"}
	for _, row := range table {
		o := option{row, row.Available && slices.Contains(chosen, row.Name)}
		if row.PromisesCorrect {
			right.Strategies = append(right.Strategies, o)
		} else {
			wrong.Strategies = append(wrong.Strategies, o)
		}
	}
	return []group{wrong, right}
}

// missing are the strategies that cannot be run.
func missing(table []shopclient.Strategy) (rows []shopclient.Strategy) {
	for _, row := range table {
		if !row.Available {
			rows = append(rows, row)
		}
	}
	return rows
}

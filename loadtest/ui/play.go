package ui

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"example.com/shop/loadtest/shopclient"
	"example.com/shop/loadtest/steps"
)

// playing is longer than any scenario takes.
const playing = 2 * time.Minute

// postPlay plays a scenario to its end, which takes seconds. Who goes away
// meanwhile ends it.
func (s *server) postPlay(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Strategy string `json:"strategy"`
		Scenario string `json:"scenario"`
	}
	if status, problem := decode(w, r, &asked); problem != nil {
		refuse(w, status, *problem)
		return
	}
	how, what, problem := s.cast(asked.Strategy, asked.Scenario)
	if problem != nil {
		refuse(w, http.StatusUnprocessableEntity, *problem)
		return
	}
	if !s.beginPlay() {
		refuse(w, http.StatusConflict, Problem{Text: busy})
		return
	}
	defer s.endPlay()
	ctx, cancel := context.WithTimeout(r.Context(), playing)
	defer cancel()
	play, err := s.lab.Play(ctx, how, what)
	if err != nil {
		refuse(w, http.StatusInternalServerError, Problem{Text: "it could not be played: " + err.Error()})
		return
	}
	text, err := json.Marshal(play)
	if err != nil {
		refuse(w, http.StatusInternalServerError, Problem{Text: err.Error()})
		return
	}
	answer(w, "application/json", text)
}

// cast finds what is to be played with what, if that can be.
func (s *server) cast(strategy, scenario string) (shopclient.Strategy, steps.Scenario, *Problem) {
	chosen, problem := pick(s.lab.Strategies(), []string{strategy})
	if problem != nil {
		return shopclient.Strategy{}, steps.Scenario{}, &Problem{"play-strategy", problem.Text}
	}
	all := s.lab.Scenarios()
	i := slices.IndexFunc(all, func(what steps.Scenario) bool { return what.Name == scenario })
	if i < 0 {
		return shopclient.Strategy{}, steps.Scenario{}, &Problem{"play-scenario", "choose one"}
	}
	if why := s.lab.Excuse(chosen[0], all[i]); why != "" {
		return shopclient.Strategy{}, steps.Scenario{}, &Problem{"play-scenario", why}
	}
	return chosen[0], all[i], nil
}

package orderhttp

import "errors"

// ProblemTypes returns the types of all problems that the API can answer.
func ProblemTypes() []string {
	all := []string{
		notReady("", nil).Type,
		"/problems/" + errorTable().find(errors.New("unheard of")).slug,
	}
	for _, r := range errorTable() {
		all = append(all, "/problems/"+r.slug)
	}
	return all
}

// Limits of the API.
const (
	MaxPage     = maxPage
	MaxPeeks    = maxPeeks
	DefaultPage = defaultPage
)

package httpapi

import "errors"

// ProblemTypes returns the types of all problems that the API can answer.
func ProblemTypes() []string {
	table := errorTable()
	all := []string{"/problems/" + find(table, errors.New("unheard of")).slug}
	for _, r := range table {
		all = append(all, "/problems/"+r.slug)
	}
	return all
}

// Limits of the API.
const (
	MaxPage     = maxPage
	DefaultPage = defaultPage
)

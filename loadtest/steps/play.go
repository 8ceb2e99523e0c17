package steps

import "time"

// Who does something in a Play.
const (
	A   = "A"   // the buyer of instance 1
	B   = "B"   // the buyer of instance 2
	Lab = "lab" // who keeps to the schedule
)

// Kinds of what they do.
const (
	HTTP     = "http"     // a request, and its answer
	Step     = "step"     // where the order service says that a request is
	Redis    = "redis"    // a command
	SQL      = "sql"      // a statement
	Schedule = "schedule" // what the lab does to a process or a request; Actor is to whom
)

// Play is a scenario that was played with a strategy.
type Play struct {
	Scenario string `json:"scenario"`
	Title    string `json:"title"` // of the scenario
	Strategy string `json:"strategy"`
	Promises bool   `json:"promises"` // the strategy promises to be correct
	Passed   bool   `json:"passed"`
	Expected bool   `json:"expected"` // it ended as the table of strategies says
	Outcome  string `json:"outcome"`  // a sentence with the figures

	Stock int64 `json:"stock"` // units that were there
	Sold  int64 `json:"sold"`  // units in accepted orders

	Events []Event `json:"events"` // in order of time
	Wrong  int     `json:"wrong"`  // index of the event with which it went wrong; -1 if it did not

	Why    string `json:"why"`    // a paragraph on what happened
	Remedy string `json:"remedy"` // what a right strategy does instead; empty where it passed
}

// Event is something that happened in a Play.
type Event struct {
	At     time.Duration `json:"at_ns"` // since the play began
	Actor  string        `json:"actor"` // A, B or Lab
	Kind   string        `json:"kind"`
	Text   string        `json:"text"`
	Answer string        `json:"answer,omitempty"`
}

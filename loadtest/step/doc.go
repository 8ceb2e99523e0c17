// Package step plays buyers against each other by a schedule, which says whose request takes the next step: the same
// requests meet at the same points every time, and so end the same way every time. A race shows that a
// shop oversells; a play shows why.
//
// Each buyer uses an instance of the shop of its own. The instances are real ones, teaching shops on one database and
// one Redis. They record what each request does, and hold it before each step that another request can notice.
//
//	player := step.NewPlayer(shops.Servers{})
//	now, err := player.Position(ctx, "none:Ab") // A has read, B has bought: what can be done next?
//	end, err := player.Play(ctx, "none:Ab")     // and then both go on to their ends
//
// What is promised:
//
//   - A schedule ends the same way every time. The table Lessons has one for each wrong strategy, in which it fails,
//     and a right strategy that passes in it.
//   - Every wait has a bound. No schedule depends on how long anything takes, but for the act that is about just that:
//     other locks live for 10 s, and a schedule takes a small part of that.
package step

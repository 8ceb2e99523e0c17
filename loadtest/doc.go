// Loadtest sends a crowd of buyers to a shop and checks what it sold.
//
// For each strategy it goes
//
//	open shops -> put fresh SKUs up for sale -> race -> audit -> recheck -> verdict
//
// and reaches the shops over HTTP only. The verdict comes from the shop's own
// audit and from the buyers' log together; neither is believed alone.
//
// The parts: buyers holds the race, shopclient speaks to a shop, shops starts
// some or finds them, verdict judges, report tells: a table, JSON, a page; compare
// sets two saved reports side by side, steps plays two buyers against each other, ui
// shows it all in a browser, as it goes.
package main

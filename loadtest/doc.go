// Loadtest sends a crowd of buyers to a shop and checks what it sold.
//
// For each strategy it goes
//
//	open shops -> put a fresh SKU up for sale -> race -> recheck -> audit -> verdict
//
// and reaches the shops over HTTP only. The verdict comes from the shop's own
// audit and from the buyers' log together; neither is believed alone.
//
// The parts: buyers holds the race, shopclient speaks to a shop, shops starts
// some or finds them, verdict judges, report tells.
package main

// Sale measures how fast the shop sells, by each strategy, beside a gin handler
// that does nothing. Its README says how, and what the figures are worth.
//
// A run goes
//
//	servers -> three shops, three handlers -> case by case, round by round, strategy by strategy -> tables
//
// and each round of a strategy goes
//
//	fresh SKUs -> load -> audit
//
// The parts: load is the buyers, process runs shops, source finds Redis and the
// database. The table of cases is in cases.go.
package main

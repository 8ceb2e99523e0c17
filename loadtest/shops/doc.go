// Package shops finds the shops that a race is held in: instances that it starts
// itself, or one that runs already.
//
// Instances that it starts are as separate as processes would be: each has its
// own connections, lockers and HTTP server, and they share one database and one
// Redis. Unless real servers are named, these are embedded ones, fresh for each
// race, in a temporary folder that Close removes.
package shops

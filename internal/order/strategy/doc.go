// Package strategy has every way to sell under concurrency, right and wrong side by side, each in a short file. Start
// with none.go, which oversells, and redis.go, which does not: the difference between the two is the lesson.
//
// The transactions of all strategies lock rows in the sequence of package order. That the key comes before the units and
// their fence has another reason, too: otherwise a buyer's own committed order would look like a newer write of another
// holder.
package strategy

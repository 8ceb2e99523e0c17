// Package audittest fills a database with orders by the hundred thousand, for
// tests and measurements of the audit. The orders are as a shop would have left
// them: of one to three lines, pending, paid, cancelled and expired, each with
// its key, its fences and its movements. The audit finds no difference.
package audittest

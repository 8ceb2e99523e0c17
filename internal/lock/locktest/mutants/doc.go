// Package mutants proves that the tests of package lock notice mistakes.
//
// Its test has a table of mistakes, each a change of a few characters in the sources of package lock, with the rule that it
// breaks and the test that must notice: a simulated seed of locksim, or a rule of locktest against Memory or Redis' scripts.
// For each, the test is compiled with a changed copy of the file (go build -overlay: the sources stay as they are), and has
// to fail; a test that hangs has failed. A mistake that does not compile, or whose place in the source is not found exactly
// once, fails this test instead, so that the table stays up to date.
//
// Adding a mistake is adding a row. Do it for each bug that is found by other means: first the row, then the test that
// catches it.
package mutants

// Package report tells what came of a load test: as one table with a few plain
// sentences for people, as JSON for programs. The types are those of the JSON,
// so that a saved report can be read back.
package report

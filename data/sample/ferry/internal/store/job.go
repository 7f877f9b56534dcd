// Package store keeps jobs in a journal of JSON lines.
package store

import "time"

// State is how far a job has come.
type State string

// The states of a job. Done and Dead are final.
const (
	Waiting State = "waiting"
	Done    State = "done"
	Dead    State = "dead"
)

// Job is one piece of work and what has become of it.
type Job struct {
	ID       int       `json:"id"`
	Text     string    `json:"text"`
	State    State     `json:"state"`
	Attempts int       `json:"attempts"`
	Due      time.Time `json:"due"`
	Error    string    `json:"error,omitempty"`
}

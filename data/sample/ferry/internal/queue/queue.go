// Package queue orders jobs by when they are due and retries those that fail.
package queue

import (
	"example.org/ferry/internal/clock"
	"example.org/ferry/internal/store"
)

// Recorder keeps a lasting note of each change to a job; *store.Journal is one.
type Recorder interface {
	Append(job store.Job) error
}

// Queue holds jobs in memory and records every change before it counts.
type Queue struct {
	jobs     map[int]store.Job
	lastID   int
	recorder Recorder
	clock    clock.Clock
	backoff  Backoff
}

// New returns a queue over jobs that were read from a store.
func New(jobs map[int]store.Job, recorder Recorder, c clock.Clock, backoff Backoff) *Queue {
	q := &Queue{jobs: make(map[int]store.Job), recorder: recorder, clock: c, backoff: backoff}
	for id, job := range jobs {
		q.jobs[id] = job
		q.lastID = max(q.lastID, id)
	}
	return q
}

// Add puts a new job in the queue, due at once.
func (q *Queue) Add(text string) (store.Job, error) {
	job := store.Job{ID: q.lastID + 1, Text: text, State: store.Waiting, Due: q.clock.Now()}
	if err := q.save(job); err != nil {
		return store.Job{}, err
	}
	q.lastID = job.ID
	return job, nil
}

// Next returns the waiting job that is due first, the older one of two, and
// false if none is waiting. The job may not be due yet.
func (q *Queue) Next() (next store.Job, found bool) {
	for _, job := range q.jobs {
		if job.State != store.Waiting {
			continue
		}
		sooner := job.Due.Before(next.Due) || (job.Due.Equal(next.Due) && job.ID < next.ID)
		if !found || sooner {
			next, found = job, true
		}
	}
	return next, found
}

// Finish records the outcome of an attempt at a job.
func (q *Queue) Finish(job store.Job, failure error) error {
	job.Attempts++
	job.State, job.Error = store.Done, ""
	if failure != nil {
		job.State, job.Error = store.Dead, failure.Error()
		if delay, again := q.backoff.Delay(job.Attempts); again {
			job.State, job.Due = store.Waiting, q.clock.Now().Add(delay)
		}
	}
	return q.save(job)
}

// Count returns how many jobs are in a state.
func (q *Queue) Count(state store.State) int {
	count := 0
	for _, job := range q.jobs {
		if job.State == state {
			count++
		}
	}
	return count
}

func (q *Queue) save(job store.Job) error {
	if err := q.recorder.Append(job); err != nil {
		return err
	}
	q.jobs[job.ID] = job
	return nil
}

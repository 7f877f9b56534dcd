package clock

import "time"

// Fake stands still until it is told to sleep. It is not safe for concurrent use.
type Fake struct {
	now   time.Time
	Slept []time.Duration
}

// NewFake returns a clock that starts at a given time.
func NewFake(start time.Time) *Fake { return &Fake{now: start} }

// Now returns the pretended time.
func (f *Fake) Now() time.Time { return f.now }

// Sleep moves the time on at once and remembers by how much.
func (f *Fake) Sleep(d time.Duration) {
	f.now = f.now.Add(d)
	f.Slept = append(f.Slept, d)
}

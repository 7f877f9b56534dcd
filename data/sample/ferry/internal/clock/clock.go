// Package clock tells the time and waits, really or in pretence.
package clock

import "time"

// Clock is what the rest of ferry knows of time.
type Clock interface {
	Now() time.Time
	Sleep(d time.Duration)
}

// System is the machine's own clock.
type System struct{}

// Now returns the current time.
func (System) Now() time.Time { return time.Now() }

// Sleep blocks for a while.
func (System) Sleep(d time.Duration) { time.Sleep(d) }

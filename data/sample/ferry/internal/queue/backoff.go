package queue

import "time"

// Backoff says how long to wait after a failure and when to give up.
type Backoff struct {
	First       time.Duration
	Longest     time.Duration
	MaxAttempts int
}

// DefaultBackoff waits from one second to five minutes and gives up after eight attempts.
var DefaultBackoff = Backoff{First: time.Second, Longest: 5 * time.Minute, MaxAttempts: 8}

// Delay returns the pause after a number of failed attempts, and false if there
// should be no further attempt.
func (b Backoff) Delay(attempts int) (time.Duration, bool) {
	if attempts >= b.MaxAttempts {
		return 0, false
	}
	delay := b.First
	for i := 1; i < attempts && delay < b.Longest; i++ {
		delay *= 2
	}
	return min(delay, b.Longest), true
}

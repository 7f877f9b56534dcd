package queue

import (
	"testing"
	"time"
)

func TestDelayDoublesUpToALimit(t *testing.T) {
	b := Backoff{First: time.Second, Longest: 5 * time.Second, MaxAttempts: 6}
	want := []time.Duration{1, 2, 4, 5, 5}
	for i, seconds := range want {
		got, ok := b.Delay(i + 1)
		if !ok || got != seconds*time.Second {
			t.Errorf("Delay(%d) = %v, %v", i+1, got, ok)
		}
	}
	if _, ok := b.Delay(6); ok {
		t.Error("Delay(6) allows a seventh attempt")
	}
}

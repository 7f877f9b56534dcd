package queue_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"example.org/ferry/internal/clock"
	"example.org/ferry/internal/queue"
	"example.org/ferry/internal/store"
)

type memory []store.Job

func (m *memory) Append(job store.Job) error {
	*m = append(*m, job)
	return nil
}

func TestDrainRetriesAndGivesUp(t *testing.T) {
	fake := clock.NewFake(time.Unix(0, 0))
	backoff := queue.Backoff{First: time.Second, Longest: time.Minute, MaxAttempts: 3}
	var log memory
	q := queue.New(nil, &log, fake, backoff)
	for _, text := range []string{"fine", "hopeless"} {
		if _, err := q.Add(text); err != nil {
			t.Fatal(err)
		}
	}

	var order []string
	err := q.Drain(func(text string) error {
		order = append(order, text)
		if text == "hopeless" {
			return errors.New("no")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"fine", "hopeless", "hopeless", "hopeless"}; !reflect.DeepEqual(order, want) {
		t.Errorf("order = %v", order)
	}
	if want := []time.Duration{time.Second, 2 * time.Second}; !reflect.DeepEqual(fake.Slept, want) {
		t.Errorf("slept = %v", fake.Slept)
	}
	if q.Count(store.Done) != 1 || q.Count(store.Dead) != 1 || len(log) != 6 {
		t.Errorf("journal = %+v", log)
	}
}

func TestNewCarriesOnTheNumbers(t *testing.T) {
	var log memory
	old := map[int]store.Job{4: {ID: 4, State: store.Done}}
	job, err := queue.New(old, &log, clock.System{}, queue.DefaultBackoff).Add("next")
	if err != nil || job.ID != 5 {
		t.Errorf("Add = %+v, %v", job, err)
	}
}

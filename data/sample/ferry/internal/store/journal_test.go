package store

import (
	"os"
	"path/filepath"
	"testing"
)

func TestJournalSurvivesACutLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.log")
	journal, jobs, err := Open(path)
	if err != nil || len(jobs) != 0 {
		t.Fatalf("Open of a new journal: %v, %v", jobs, err)
	}
	for _, job := range []Job{
		{ID: 1, Text: "a", State: Waiting},
		{ID: 2, Text: "b", State: Waiting},
		{ID: 1, Text: "a", State: Done, Attempts: 1},
	} {
		if err := journal.Append(job); err != nil {
			t.Fatal(err)
		}
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, `{"id":2,"st`...), 0o644); err != nil {
		t.Fatal(err)
	}

	journal, jobs, err = Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	if len(jobs) != 2 || jobs[1].State != Done || jobs[2].State != Waiting {
		t.Errorf("jobs = %+v", jobs)
	}
	if after, _ := os.ReadFile(path); string(after) != string(whole) {
		t.Errorf("the cut line is still there: %q", after)
	}
}

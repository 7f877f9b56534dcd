package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Journal appends the latest state of a job to a file; the last line about a job counts.
type Journal struct {
	file *os.File
}

// Open reads a journal, creating it if need be, and returns its jobs by number.
// A line cut short at the end of the file, as by a crash, is removed.
func Open(path string) (*Journal, map[int]Job, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	jobs, good, err := replay(file)
	if err == nil {
		err = file.Truncate(good)
	}
	if err == nil {
		_, err = file.Seek(good, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("journal %s: %w", path, err)
	}
	return &Journal{file: file}, jobs, nil
}

func replay(r io.Reader) (jobs map[int]Job, good int64, err error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, 0, err
	}
	jobs = make(map[int]Job)
	start := 0
	for at, b := range data {
		if b != '\n' {
			continue
		}
		var job Job
		if err := json.Unmarshal(data[start:at], &job); err != nil {
			return nil, 0, fmt.Errorf("at byte %d: %w", start, err)
		}
		jobs[job.ID] = job
		start = at + 1
	}
	return jobs, int64(start), nil
}

// Append records the state of a job and waits until it is on the disk.
func (j *Journal) Append(job Job) error {
	line, err := json.Marshal(job)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return j.file.Sync()
}

// Close closes the file; closing twice is not an error.
func (j *Journal) Close() error {
	if err := j.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

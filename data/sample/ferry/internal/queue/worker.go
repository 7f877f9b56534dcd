package queue

// Handler does the work of a job.
type Handler func(text string) error

// Drain runs jobs one by one, sleeping until each is due, until none is waiting.
// It stops early only if an outcome cannot be recorded.
func (q *Queue) Drain(handle Handler) error {
	for {
		job, found := q.Next()
		if !found {
			return nil
		}
		if wait := job.Due.Sub(q.clock.Now()); wait > 0 {
			q.clock.Sleep(wait)
		}
		if err := q.Finish(job, handle(job.Text)); err != nil {
			return err
		}
	}
}

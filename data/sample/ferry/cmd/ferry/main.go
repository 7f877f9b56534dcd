// Command ferry adds jobs to a queue and runs them.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"

	"example.org/ferry/internal/clock"
	"example.org/ferry/internal/queue"
	"example.org/ferry/internal/store"
)

func main() {
	path := flag.String("journal", "ferry.log", "file that holds the queue")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: ferry [-journal FILE] add TEXT | run COMMAND [ARG]...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*path, flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ferry:", err)
		os.Exit(1)
	}
}

func run(path, verb string, args []string) error {
	journal, jobs, err := store.Open(path)
	if err != nil {
		return err
	}
	defer journal.Close()
	q := queue.New(jobs, journal, clock.System{}, queue.DefaultBackoff)
	switch verb {
	case "add":
		job, err := q.Add(args[0])
		if err == nil {
			fmt.Println(job.ID)
		}
		return err
	case "run":
		if err := q.Drain(command(args)); err != nil {
			return err
		}
		if dead := q.Count(store.Dead); dead > 0 {
			return fmt.Errorf("%d jobs set aside", dead)
		}
		return nil
	}
	return fmt.Errorf("unknown command %q", verb)
}

// command returns a handler that runs a program with the job as its last argument.
func command(args []string) queue.Handler {
	return func(text string) error {
		cmd := exec.Command(args[0], append(args[1:len(args):len(args)], text)...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}
}

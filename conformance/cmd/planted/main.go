package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/bug"
	"github.com/espalier-dev/espalier/conformance/launch"
)

func main() {
	missed, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(2)
	}
	if missed > 0 {
		os.Exit(1)
	}
}

func run() (missed int, err error) {
	var (
		seed    = flag.Uint64("seed", 1, "which bugs are drawn, and the first seed of the comparison")
		count   = flag.Int("count", 10, "how many bugs are drawn")
		names   = flag.String("bug", "", "plant these bugs, separated by commas")
		limit   = flag.Duration("limit", 10*time.Minute, "how long a bug may stay hidden")
		list    = flag.Bool("list", false, "print the bugs and exit")
		workers = flag.Int("workers", 2, "parallel workers of the comparison")
		show    = flag.Bool("show", false, "print the difference that was found")
	)
	flag.Parse()
	if *list {
		for i := range bug.Engine {
			fmt.Printf("%s: %s\n", bug.Engine[i].Name, bug.Engine[i].What)
		}
		return 0, nil
	}
	drawn, err := draw(*names, *count, *seed)
	if err != nil {
		return 0, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := launch.Root()
	if err != nil {
		return 0, err
	}
	work := filepath.Join(root, ".bin", "bugs")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return 0, err
	}
	builder, err := bug.NewBuilder(ctx, root, work)
	if err != nil {
		return 0, err
	}
	for _, b := range drawn {
		binary := filepath.Join(work, "conform-"+b.Name)
		if err := builder.Comparison(ctx, b, binary); err != nil {
			return 0, err
		}
		d, err := find(ctx, binary, *limit, "-seed", strconv.FormatUint(*seed, 10), "-workers", strconv.Itoa(*workers))
		_ = os.Remove(binary)
		if err != nil {
			return 0, err
		}
		if d.what == "" {
			missed++
			fmt.Printf("%s: not found in %v: %s\n", b.Name, d.after.Round(time.Second), b.What)
			continue
		}
		fmt.Printf("%s: found after %v by %s: %s\n", b.Name, d.after.Round(time.Second), d.what, b.What)
		if *show {
			fmt.Println(d.text)
		}
	}
	fmt.Printf("planted: %d of %d bugs found, drawn from %d with seed %d\n", len(drawn)-missed, len(drawn), len(bug.Engine), *seed)
	return missed, nil
}

// draw returns the named bugs, or some by the seed.
func draw(names string, count int, seed uint64) (drawn []*bug.Bug, err error) {
	if names != "" {
		for name := range strings.SplitSeq(names, ",") {
			b, err := bug.Named(bug.Engine, name)
			if err != nil {
				return nil, err
			}
			drawn = append(drawn, b)
		}
		return drawn, nil
	}
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(bug.Engine))[:min(count, len(bug.Engine))] {
		drawn = append(drawn, &bug.Engine[i])
	}
	return drawn, nil
}

// A discovery is how a bug was found. what is empty if it was not.
type discovery struct {
	what, text string
	after      time.Duration
}

// find runs the comparison until it reports a difference.
func find(ctx context.Context, binary string, limit time.Duration, args ...string) (d discovery, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(limited, binary, append([]string{"-first"}, args...)...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	began := time.Now()
	err = command.Run()
	d.after = time.Since(began)
	text := out.String()
	at := strings.Index(text, "DIFFERENCE (")
	switch {
	case at >= 0:
		d.what, _, _ = strings.Cut(text[at+len("DIFFERENCE ("):], ")")
		d.text = text[at:]
		return d, nil
	case ctx.Err() != nil:
		return d, ctx.Err()
	case limited.Err() != nil, err == nil:
		return d, nil
	}
	return d, fmt.Errorf("the comparison failed: %w: %s", err, bytes.TrimSpace(errs.Bytes()))
}

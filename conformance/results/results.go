package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Run is one run of a benchmark.
type Run struct {
	Command string            `json:"command"`
	Machine string            `json:"machine"`
	Date    string            `json:"date"`
	Commit  string            `json:"commit"`
	Figures map[string]string `json:"figures"`
}

// A Recorder collects the figures of a benchmark that is running.
type Recorder struct {
	benchmark string
	record    *bool
	figures   map[string]string
}

// New returns the recorder of a benchmark, whose name is that of its target in the Makefile. It defines the flag -record.
func New(benchmark string) *Recorder {
	return &Recorder{
		benchmark: benchmark, figures: map[string]string{},
		record: flag.Bool("record", false, "write the figures into docs/results.json, from which documents quote them"),
	}
}

// Set records a figure as documents write it, with its unit.
func (r *Recorder) Set(name, format string, args ...any) {
	r.figures[name] = fmt.Sprintf(format, args...)
}

// Count writes a whole number as documents do: 10,000.
func Count(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", Count(n/1000), n%1000)
}

// Rate writes how often something happens in a second: with a decimal where it matters.
func Rate(perSecond float64) string {
	if perSecond < 100 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return Count(int(math.Round(perSecond)))
}

// Time writes how long something takes, as documents do.
func Time(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// Save writes the figures into the results file, beside those that this run did not measure. Without -record it does nothing.
func (r *Recorder) Save() error {
	if !*r.record {
		return nil
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	commit, err := git("describe", "--always", "--dirty", "--exclude=*")
	if err != nil {
		return err
	}
	file := filepath.Join(root, "docs", "results.json")
	runs, err := Read(file)
	if err != nil {
		return err
	}
	figures := r.figures
	if was := runs[r.benchmark]; was != nil {
		// A run of some parts must not remove the others, nor pass them off as its own.
		if missing := lacking(was.Figures, figures); len(missing) > 0 {
			return fmt.Errorf("-record: this run did not measure %s, which documents may quote; run all of %s", strings.Join(missing, ", "), r.benchmark)
		}
	}
	runs[r.benchmark] = &Run{
		Command: strings.Join(append([]string{"make", r.benchmark}, flags()...), " "),
		Machine: machine(), Date: time.Now().UTC().Format(time.DateOnly), Commit: commit, Figures: figures,
	}
	return write(file, runs)
}

// lacking returns the names that are in one and not in the other.
func lacking(was, now map[string]string) []string {
	var missing []string
	for name := range was {
		if _, ok := now[name]; !ok {
			missing = append(missing, name)
		}
	}
	return missing
}

// flags are those of this run that change what is measured.
func flags() []string {
	var set []string
	flag.Visit(func(f *flag.Flag) {
		if f.Name != "record" && !strings.HasPrefix(f.Name, "test.") {
			set = append(set, "-"+f.Name+"="+f.Value.String())
		}
	})
	if len(set) == 0 {
		return nil
	}
	return []string{"BENCHFLAGS=" + strconv.Quote(strings.Join(set, " "))}
}

// Read reads a results file; one that does not exist is empty.
func Read(file string) (map[string]*Run, error) {
	runs := map[string]*Run{}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return runs, nil
	}
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&runs); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return runs, nil
}

func write(file string, runs map[string]*Run) error {
	data, err := json.MarshalIndent(maps.Clone(runs), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

var model = regexp.MustCompile(`(?m)^model name\s*: (.+)$`)

// machine says what the figures were measured on. It leaves the name of the host out.
func machine() string {
	text := fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := model.FindSubmatch(data); m != nil {
			text = string(m[1]) + ", " + text
		}
	}
	return text
}

package etcdtest

import (
	"bytes"
	"flag"
	"io"
	"os"
	"slices"
	"sync"
	"testing"

	"k8s.io/klog/v2"
)

// logsVariable has the tests of a package print the server's log.
const logsVariable = "ESPALIER_TEST_LOGS"

// quiet drops the log: a hundred servers write so much that it hides the test that failed.
func quiet() {
	if os.Getenv(logsVariable) != "" {
		return
	}
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Set("stderrthreshold", "FATAL") // a name and a value that klog knows
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

// Log is what was logged during a test.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// captured are the logs that tests keep at the moment. Each has all lines of the process.
var captured struct {
	change sync.Mutex // held while klog is told where to write
	mu     sync.Mutex
	logs   []*Log
}

// all writes to every captured log.
type all struct{}

// Write implements io.Writer.
func (all) Write(p []byte) (int, error) {
	captured.mu.Lock()
	defer captured.mu.Unlock()
	for _, log := range captured.logs {
		_, _ = log.Write(p) // to memory
	}
	return len(p), nil
}

// Capture keeps the log of the process until the test ends: that of parallel tests as well.
func Capture(tb testing.TB) *Log {
	tb.Helper()
	log := &Log{}
	captured.change.Lock()
	defer captured.change.Unlock()
	captured.mu.Lock()
	captured.logs = append(captured.logs, log)
	first := len(captured.logs) == 1
	captured.mu.Unlock()
	if first {
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
		klog.SetOutputBySeverity("INFO", all{}) // has the lines of all severities
	}
	tb.Cleanup(func() {
		klog.Flush()
		captured.change.Lock()
		defer captured.change.Unlock()
		captured.mu.Lock()
		captured.logs = slices.DeleteFunc(captured.logs, func(l *Log) bool { return l == log })
		last := len(captured.logs) == 0
		captured.mu.Unlock()
		if last {
			klog.SetOutput(os.Stderr)
			klog.LogToStderr(true)
			quiet()
		}
	})
	return log
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was logged so far.
func (l *Log) String() string {
	klog.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset forgets what was logged so far.
func (l *Log) Reset() {
	klog.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

package etcdtest

import (
	"bytes"
	"flag"
	"io"
	"os"
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

// Capture keeps the log of the process until the test ends. The test must not be parallel to one that does the same.
func Capture(tb testing.TB) *Log {
	tb.Helper()
	log := &Log{}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	klog.SetOutputBySeverity("INFO", log) // has the lines of all severities
	tb.Cleanup(func() {
		klog.Flush()
		klog.SetOutput(os.Stderr)
		klog.LogToStderr(true)
		quiet()
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

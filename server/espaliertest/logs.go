package espaliertest

import (
	"flag"
	"io"
	"os"
	"sync"
	"testing"

	"k8s.io/klog/v2"
)

// quiet keeps the server's log out of the tests' output: some twenty lines for each test
// server, though clients get the errors that concern them. ESPALIERTEST_LOGS=1 in the
// environment leaves klog as it is. A logger that the test has set in klog gets everything.
// Programs that are no tests keep their klog.
var quiet = sync.OnceFunc(func() {
	if os.Getenv("ESPALIERTEST_LOGS") != "" || !testing.Testing() {
		return
	}
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range map[string]string{"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			panic(err) // the flags are klog's own
		}
	}
	klog.SetOutput(io.Discard)
})

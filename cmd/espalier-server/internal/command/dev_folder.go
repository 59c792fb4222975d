package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
)

// kubeconfigName is the administrator's, in the data folder.
const kubeconfigName = "kubeconfig"

// defaultDataDir is the data folder unless --data-dir names another.
const defaultDataDir = ".espalier"

// makeDataDir makes the folder, unless it is there, and has git ignore it: it holds
// keys. A folder of another name that is there may be a project, and is left as it is.
func makeDataDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err == nil && info.Mode()&os.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link, which a repository can bring along: remove it, or name the folder itself with --data-dir", dir)
	case err == nil && filepath.Base(dir) != defaultDataDir:
		return nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ignore := filepath.Join(dir, ".gitignore")
	if text, err := readOwner(ignore); err == nil && text == ignoreAll {
		return nil
	}
	return writeSecret(ignore, []byte(ignoreAll))
}

// ignoreAll has git ignore a folder.
const ignoreAll = "*\n"

// writeSecret writes a file that only its owner may read. A concurrent reader gets all of
// the old one or all of the new one.
func writeSecret(path string, data []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error counts
		}
	}()
	_, err = file.Write(data)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// setLogs has the server's log where it is wanted. It belongs to the process.
func (d *devOptions) setLogs() error {
	out, everything := io.Discard, "false"
	switch {
	case d.log != "":
		file, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("--log: %w", err)
		}
		out = file // open as long as the process is
	case d.verbosity > 0:
		everything = "true"
	}
	klog.SetOutput(out)
	return setKlog(map[string]string{"logtostderr": everything, "alsologtostderr": "false", "stderrthreshold": "ERROR", "v": strconv.Itoa(d.verbosity)})
}

// hushLogs keeps to the log what goes wrong only because everything comes to an
// end.
func hushLogs() { cli.Must(setKlog(map[string]string{"stderrthreshold": "FATAL"})) }

func setKlog(settings map[string]string) error {
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range settings {
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

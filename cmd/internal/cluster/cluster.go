package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// The bounds of a read. The CRDs of the largest clusters have some 100 MiB.
const (
	maxBytes = 256 << 20
	maxSaid  = 64 << 10 // of kubectl's errors
	// maxAnswer is of one object.
	maxAnswer = 8 << 20
)

// requestTimeout bounds each request of kubectl: an address that does not answer ends the read.
const requestTimeout = "30s"

// Source names a cluster. The zero value is the one that kubectl uses.
type Source struct {
	Kubeconfig string // file; empty for kubectl's own
	Context    string // of the kubeconfig; empty for its current one
}

// String is the name for messages.
func (s Source) String() string {
	switch {
	case s.Context != "":
		return "cluster " + s.Context
	case s.Kubeconfig != "":
		return "cluster of " + s.Kubeconfig
	}
	return "cluster"
}

// flags name the cluster to kubectl. A value cannot become a flag of its own.
func (s Source) flags() (flags []string) {
	if s.Kubeconfig != "" {
		flags = append(flags, "--kubeconfig="+s.Kubeconfig)
	}
	if s.Context != "" {
		flags = append(flags, "--context="+s.Context)
	}
	return flags
}

// Read calls a function with the name and the JSON of each CRD of the cluster. The text is valid during the call.
func Read(ctx context.Context, s Source, each func(name string, text []byte) error) error {
	args := append([]string{"get", "customresourcedefinitions.v1.apiextensions.k8s.io", "-o", "json", "--request-timeout=" + requestTimeout}, s.flags()...)
	err := kubectl(ctx, args, nil, func(out io.Reader) error { return decode(out, each) })
	if err != nil {
		return fmt.Errorf("reading the CRDs of the %s failed: %w", s, err)
	}
	return nil
}

// Run runs kubectl with arguments for the cluster and returns what it prints. in is its standard input.
func Run(ctx context.Context, s Source, in string, args ...string) ([]byte, error) {
	var text []byte
	args = append(append(args, "--request-timeout="+requestTimeout), s.flags()...)
	err := kubectl(ctx, args, strings.NewReader(in), func(out io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(out, maxAnswer+1))
		if err == nil && len(text) > maxAnswer {
			err = fmt.Errorf("kubectl printed more than %d MiB", maxAnswer>>20)
		}
		return err
	})
	return text, err
}

// identity returns what tells clusters apart: the context's name, and the address of the server. It asks no server.
func (s Source) identity(ctx context.Context) (name, server string, err error) {
	var text []byte
	args := append([]string{"config", "view", "--minify", `-o=jsonpath={.current-context}{"\n"}{.clusters[0].cluster.server}`}, s.flags()...)
	err = kubectl(ctx, args, nil, func(out io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(out, maxSaid))
		return err
	})
	if err != nil {
		return "", "", fmt.Errorf("reading the kubeconfig of the %s failed: %w", s, err)
	}
	name, server, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	return name, server, nil
}

var (
	errTooLarge = fmt.Errorf("they have more than %d MiB", maxBytes>>20)
	errNoList   = errors.New("kubectl printed no list")
)

// decode reads a list of CRDs as kubectl prints it, one by one.
func decode(r io.Reader, each func(name string, text []byte) error) error {
	limited := &io.LimitedReader{R: r, N: maxBytes}
	err := decodeList(json.NewDecoder(limited), nil, func(item []byte) error {
		var named struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if json.Unmarshal(item, &named) != nil || named.Metadata.Name == "" {
			return errNoList
		}
		return each(named.Metadata.Name, item)
	})
	if err != nil && limited.N <= 0 {
		return errTooLarge
	}
	return err
}

// decodeList reads a list: its metadata into a value, if that is not nil, and its items one by one.
// An item is valid during the call.
func decodeList(d *json.Decoder, metadata any, each func(item []byte) error) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errNoList
	}
	found := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if key != "items" {
			var other json.RawMessage
			if err := d.Decode(&other); err != nil {
				return err
			}
			if key == "metadata" && metadata != nil {
				if err := json.Unmarshal(other, metadata); err != nil {
					return err
				}
			}
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return errNoList
		}
		found = true
		var item json.RawMessage
		for d.More() {
			if err := d.Decode(&item); err != nil {
				return err
			}
			if err := each(item); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil {
			return err
		}
	}
	if !found {
		return errNoList
	}
	return nil
}

// kubectl runs kubectl with an input and has a function read its output. The error is what kubectl says.
func kubectl(ctx context.Context, args []string, in io.Reader, read func(io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	said := &head{}
	cmd.Stdin, cmd.Stderr = in, said
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); errors.Is(err, exec.ErrNotFound) {
		return errors.New("kubectl is not installed, or not in PATH")
	} else if err != nil {
		return err
	}
	// A program that kubectl has started may keep the pipe open after kubectl's end.
	defer context.AfterFunc(ctx, func() { _ = out.Close() })()
	readErr := read(out)
	if readErr != nil {
		_ = out.Close() // kubectl need not print the rest
	}
	waitErr := cmd.Wait()
	switch text := said.cause(); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case waitErr != nil && text != "":
		return errors.New(text)
	case readErr != nil:
		return readErr
	case waitErr != nil:
		return fmt.Errorf("kubectl: %w", waitErr)
	}
	return nil
}

// head keeps the beginning of what is written.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	_, _ = h.Buffer.Write(p[:min(len(p), max(0, maxSaid-h.Len()))])
	return len(p), nil
}

// logged is a line of kubectl's log, which repeats its errors for each attempt.
var logged = regexp.MustCompile(`^[EWI]\d{4} `)

// cause is what was written without lines of the log, if there are others.
func (h *head) cause() string {
	text := strings.TrimSpace(h.String())
	var kept []string
	for line := range strings.Lines(text) {
		if !logged.MatchString(line) {
			kept = append(kept, strings.TrimRight(line, "\r\n"))
		}
	}
	if len(kept) > 0 {
		return strings.Join(kept, "\n")
	}
	return text
}

package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Options say where the data is, and what it is worth.
type Options struct {
	// Dir has the data; it is created. Empty is a temporary folder, which is
	// removed by Stop.
	Dir string
	// Fleeting data need not survive the machine: writes do not wait for the disk.
	Fleeting bool
}

// Etcd is a running etcd.
type Etcd struct {
	embedded *embed.Etcd
	sockets  string // folder
}

// quota is how large the data may become: what etcd recommends as the most.
const quota = 8 << 30

// Start runs etcd and returns when it answers. The context bounds the start only.
func Start(ctx context.Context, o Options) (_ *Etcd, err error) {
	e := &Etcd{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Stop())
		}
	}()
	// The path of a socket may have a hundred bytes, that of a folder many more.
	if e.sockets, err = os.MkdirTemp("", "espalier-etcd-"); err != nil {
		return nil, err
	}
	dir := o.Dir
	if dir == "" {
		dir = filepath.Join(e.sockets, "data")
	}
	if err := errors.Join(free(dir), complete(dir)); err != nil {
		return nil, err
	}
	if e.embedded, err = embed.StartEtcd(e.config(dir, o.Fleeting)); err != nil {
		return nil, fmt.Errorf("starting etcd in %s: %w", dir, err)
	}
	select {
	case <-e.embedded.Server.ReadyNotify():
		return e, nil
	case err := <-e.embedded.Err():
		return nil, fmt.Errorf("etcd in %s: %w", dir, err)
	case <-ctx.Done():
		return nil, fmt.Errorf("etcd in %s has not become ready: %w", dir, context.Cause(ctx))
	}
}

// config is the configuration of a single member, which has no other member to wait for:
// its elections are quick.
func (e *Etcd) config(dir string, fleeting bool) *embed.Config {
	c := embed.NewConfig()
	c.Name, c.Dir, c.UnsafeNoFsync = "espalier", dir, fleeting
	c.ListenClientUrls = []url.URL{e.socket("client")}
	c.AdvertiseClientUrls = c.ListenClientUrls
	// Health and metrics have a socket of their own, which leaves that of the
	// clients to gRPC alone.
	c.ListenClientHttpUrls = []url.URL{e.socket("http")}
	// The listener of peers takes its path from the host.
	peer := e.socket("peer")
	c.ListenPeerUrls = []url.URL{{Scheme: peer.Scheme, Host: peer.Path}}
	// What is advertised is remembered in the data, and must be the same next time.
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 10, 100
	c.QuotaBackendBytes = quota
	c.EnableGRPCGateway = false
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger())
	return c
}

// logger tells only what etcd cannot go on after. It has "errors" of every start
// and of every end, and what goes wrong in between its clients are told.
func logger() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), zapcore.DPanicLevel)).Named("etcd")
}

func (e *Etcd) socket(name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.ToSlash(filepath.Join(e.sockets, name))}
}

// lockTime is how long Start waits for another process to release the folder.
const lockTime = 200 * time.Millisecond

// free creates the folder, and fails if another etcd has it: etcd would wait for
// it without a word.
func free(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	db, err := bolt.Open(file, 0o600, &bolt.Options{Timeout: lockTime})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return fmt.Errorf("%s is in use by another process: stop that one, or use another folder", dir)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read as etcd's data: %w", file, err)
	}
	return db.Close()
}

// complete fails if there is data without its log: etcd would wait for a leader that
// never comes.
func complete(dir string) error {
	member := filepath.Join(dir, "member")
	if _, err := os.Stat(filepath.Join(member, "snap", "db")); err != nil {
		return nil // nothing is there yet
	}
	logs, err := filepath.Glob(filepath.Join(member, "wal", "*.wal"))
	if err != nil || len(logs) > 0 {
		return err
	}
	return fmt.Errorf("etcd's write-ahead log is missing: %s has no *.wal file, and etcd cannot open its data without it; "+
		"restore the whole folder %s from a backup, or remove it to start with no data", filepath.Join(member, "wal"), dir)
}

// Endpoint is where it listens, for --etcd-servers.
func (e *Etcd) Endpoint() string {
	socket := e.socket("client")
	return socket.String()
}

// Err has an error if etcd ends by itself.
func (e *Etcd) Err() <-chan error { return e.embedded.Err() }

// Stop ends it, and removes what is not to be kept.
func (e *Etcd) Stop() error {
	var err error
	if e.embedded != nil {
		err = e.end()
	}
	if e.sockets == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(e.sockets))
}

// stopTime is how long etcd may take to stop. One that never became ready does not.
const stopTime = 10 * time.Second

// end stops etcd.
func (e *Etcd) end() error {
	over := make(chan struct{})
	go func() { defer close(over); e.embedded.Close() }()
	limit := stopTime
	select {
	case <-e.embedded.Server.ReadyNotify():
	default:
		limit = time.Second
	}
	select {
	case <-over:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("stopping etcd: it has not stopped within %v", limit)
	}
}

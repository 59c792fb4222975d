package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// KineCommand returns the command line of kine, which speaks etcd's API in front of a database. It listens on an address, a
// host with a port.
func KineCommand(listen, source string) ([]string, error) {
	binary, err := Tool("kine")
	if err != nil {
		return nil, fmt.Errorf("%w; `make kine` builds kine", err)
	}
	return []string{binary, "--listen-address", "tcp://" + listen, "--endpoint", source, "--metrics-bind-address", "0"}, nil
}

// SQLite is the source of a SQLite database in a file, with the parameters that kine itself uses.
func SQLite(file string) string {
	return "sqlite://" + file + "?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate"
}

// StartKine runs kine in front of a new database: "sqlite" or "postgres".
func StartKine(ctx context.Context, engine string) (*Etcd, func(), error) {
	port, err := FreePort()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "espalier-kine-")
	if err != nil {
		return nil, nil, err
	}
	source, end := SQLite(filepath.Join(dir, "kine.db")), func() {}
	if engine == "postgres" {
		database, err := StartPostgres(ctx)
		if err != nil {
			return nil, nil, err
		}
		source, end = database.URL, database.Stop
	}
	argv, err := KineCommand(fmt.Sprintf("127.0.0.1:%d", port), source)
	if err != nil {
		end()
		return nil, nil, err
	}
	p, err := Start(ctx, dir, "kine", argv...)
	if err != nil {
		end()
		return nil, nil, err
	}
	e := &Etcd{p, fmt.Sprintf("http://127.0.0.1:%d", port), port}
	stop := func() { p.Stop(); end() }
	if err := p.Await(ctx, time.Minute, func(ctx context.Context) error { return answers(ctx, e) }); err != nil {
		log := p.Output()
		stop()
		return nil, nil, fmt.Errorf("%w\n%s", err, log)
	}
	return e, stop, nil
}

// answers returns nil if an engine reads.
func answers(ctx context.Context, e *Etcd) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.URL}, DialTimeout: time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Get(ctx, "/nothing")
	return err
}

// A Postgres is a running PostgreSQL. URL is the source of a database that kine makes.
type Postgres struct {
	*Process
	URL string
}

// StartPostgres runs the PostgreSQL that is installed as a package of Debian, with a new database, as its own user: it
// refuses to run as root.
func StartPostgres(ctx context.Context) (*Postgres, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("there is no PostgreSQL in /usr/lib/postgresql: install the package postgresql")
	}
	bin := filepath.Dir(found[len(found)-1])
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "espalier-postgres-")
	if err != nil {
		return nil, err
	}
	as := []string{}
	if os.Getuid() == 0 {
		// The kernel forgets the signal of dieWithParent when the user changes.
		as = []string{"setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig=keep"}
		if err := os.Chmod(dir, 0o777); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(dir, "data")
	made, err := Start(ctx, dir, "initdb", append(as, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "--auth=trust")...)
	if err != nil {
		return nil, err
	}
	select {
	case <-made.done:
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("initdb takes more than a minute")
	}
	p, err := Start(ctx, dir, "postgres", append(as, filepath.Join(bin, "postgres"), "-D", data, "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-k", dir, "-c", "max_connections=200")...)
	if err != nil {
		return nil, err
	}
	// It listens before it takes requests, and kine that cannot make its database waits for it for ever.
	ready := func(ctx context.Context) error {
		return exec.CommandContext(ctx, filepath.Join(bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", fmt.Sprint(port)).Run()
	}
	if err := p.Await(ctx, time.Minute, ready); err != nil {
		log := p.Output()
		p.Stop()
		return nil, fmt.Errorf("PostgreSQL does not start: %w\n%s", err, log)
	}
	return &Postgres{p, fmt.Sprintf("postgres://postgres@127.0.0.1:%d/kine?sslmode=disable", port)}, nil
}

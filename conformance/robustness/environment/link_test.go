package environment

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo answers each line with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	return l.Addr().String()
}

type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func call(t *testing.T, k *Link) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", k.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &caller{t, conn, bufio.NewReader(conn)}
}

// say sends a line and returns what happens: the line, "nothing" or "end".
func (c *caller) say(line string, within time.Duration) string {
	if _, err := c.conn.Write([]byte(line + "\n")); err != nil {
		return "end"
	}
	return c.hear(within)
}

func (c *caller) hear(within time.Duration) string {
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
	got, err := c.in.ReadString('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "nothing"
	case err != nil:
		return "end"
	}
	return got[:len(got)-1]
}

// A link passes, holds, loses, delays and cuts, as told.
func TestLink(t *testing.T) {
	k, err := newLink(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	const long, short = 20 * time.Second, 100 * time.Millisecond
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q instead of %q", what, got, want)
		}
	}
	c := call(t, k)
	want("healthy", c.say("a", long), "a")
	k.Hold()
	want("held", c.say("b", short), "nothing")
	k.Heal()
	want("healed: what was held arrives", c.hear(long), "b")
	k.Hold()
	_, _ = c.conn.Write([]byte("c\n"))
	time.Sleep(short)
	k.Heal()
	want("healed again", c.hear(long), "c")
	k.HoldDown()
	want("answers held", c.say("c", short), "nothing")
	k.Reset()
	want("reset: the answer is lost", c.hear(long), "end")
	k.Heal()
	d := call(t, k)
	want("connected again", d.say("d", long), "d")
	k.Delay(200 * time.Millisecond)
	began := time.Now()
	want("late", d.say("e", long), "e")
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("200 ms late in each direction took %v", took)
	}
	k.Heal()
	k.Cut()
	want("cut", d.hear(long), "end")
	want("cut, for new connections, too", call(t, k).say("f", long), "end")
	k.Heal()
	want("healed", call(t, k).say("g", long), "g")
}

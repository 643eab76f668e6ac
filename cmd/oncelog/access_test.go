package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// token makes a token for the gateway's directory. If the server runs, it has read it.
func (g *gateway) token(args ...string) string {
	g.tb.Helper()
	token := strings.TrimSpace(g.admin(append([]string{"token", "create"}, args...)...))
	if g.running() {
		c := g.as(token)
		eventually(g.tb, func() error { _, err := c.Limits(context.Background()); return err })
	}
	return token
}

// admin runs a command on the gateway's directory, whether or not the server runs.
func (g *gateway) admin(args ...string) string {
	g.tb.Helper()
	cmd := exec.Command("oncelog", append(args, "--data", g.data)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		g.tb.Fatalf("oncelog %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// newLockedGateway starts one that asks for tokens. Its client and its client commands
// have one that may do everything.
func newLockedGateway(t *testing.T, flags ...string) *gateway {
	t.Helper()
	g := unstarted(t, flags...)
	root := g.token("--scope", "admin", "--name", "root")
	g.options = []producer.ClientOption{producer.WithToken(root)}
	g.env = []string{tokenVariable + "=" + root}
	g.start()
	return g
}

// as is a client of the gateway with a token.
func (g *gateway) as(token string) *producer.Client {
	g.tb.Helper()
	c, err := producer.NewClient(g.url, producer.WithToken(token))
	if err != nil {
		g.tb.Fatal(err)
	}
	g.tb.Cleanup(c.CloseIdleConnections)
	return c
}

// eventually tries again until try gives nil: a server looks at its files every second.
func eventually(t testing.TB, try func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// is expects an error of a code.
func is(t *testing.T, err error, code producer.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// TestFirstTokenSwitchesAccessOn in a server that runs, without a restart; removing the
// file does not switch it off again.
func TestFirstTokenSwitchesAccessOn(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	token := g.token("--scope", "admin")
	eventually(t, func() error {
		if _, err := g.client.Topic(t.Context(), "t"); !errors.Is(err, producer.CodeUnauthenticated) {
			return fmt.Errorf("without a token: %w", err)
		}
		return nil
	})
	if _, err := g.as(token).Topic(t.Context(), "t"); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(g.data, "access.json")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		var line struct{ Error string }
		return g.logs.find("a file of access control cannot be used", &line)
	})
	_, err := g.client.Topic(t.Context(), "t")
	is(t, err, producer.CodeUnauthenticated)
	if _, err := g.as(token).Topic(t.Context(), "t"); err != nil {
		t.Error(err)
	}
	g.stop()
	out, err := exec.Command("oncelog", "serve", "--data", g.data, "--listen", g.listen).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is gone, and there have been tokens") {
		t.Errorf("it starts again without its tokens: %v\n%s", err, out)
	}
}

// TestRevokeWhileClientsWait: a consumer that follows and an event stream end, within
// seconds and without a restart; a command line made with the token gets no further.
func TestRevokeWhileClientsWait(t *testing.T) {
	g := newLockedGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	spy := g.token("--scope", "consume", "--name", "spy", "--topic-prefix", "t")
	rootEnv := g.env
	g.env = []string{tokenVariable + "=" + spy}
	follow := g.run("consume", "--topic", "t")
	g.env = rootEnv
	p := g.run("produce", "--topic", "t")
	fmt.Fprintln(p.in, "before")
	p.wait(exitOK)
	follow.expectLine("before")

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/topics/t/partitions/0/records", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+spy)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()

	g.admin("token", "revoke", "--name", "spy")
	if stderr := follow.wait(exitFailure); !strings.Contains(stderr, "unauthenticated") {
		t.Errorf("the consumer said %q", stderr)
	}
	p = g.run("produce", "--topic", "t")
	fmt.Fprintln(p.in, "after")
	p.wait(exitOK)
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), "before") || strings.Contains(string(text), "after") {
		t.Errorf("the stream: %q, %v", text, err)
	}
	_, err = g.as(spy).Topic(t.Context(), "t")
	is(t, err, producer.CodeUnauthenticated)
}

// TestTwoPrincipalsAndAKill: whose a producer id is survives SIGKILL; nobody can fence it
// before or after.
func TestTwoPrincipalsAndAKill(t *testing.T) {
	g := newLockedGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	alice, mallory := g.as(g.token("--scope", "produce", "--name", "alice")), g.as(g.token("--scope", "produce", "--name", "mallory"))
	id, err := alice.AllocateProducer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := id.PID
	request := openapi.AppendRequest{Records: []openapi.AppendRecord{{ValueText: new("x")}}}
	appendAs := func(c *producer.Client, epoch, seq int64) error {
		request.PID, request.Epoch, request.BaseSeq = &pid, &epoch, &seq
		_, err := c.Append(t.Context(), "t", 0, request)
		return err
	}
	for round := range int64(3) {
		if err := until(t.Context(), func() error { return appendAs(alice, 0, round) }); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		is(t, appendAs(mallory, 0, round+1), producer.CodeForbidden)
		is(t, appendAs(mallory, 1, 0), producer.CodeForbidden)
		is(t, appendAs(g.client, 1, 0), producer.CodeForbidden)
		g.kill()
		g.start()
		is(t, appendAs(mallory, 1, 0), producer.CodeForbidden)
	}
	if id, err := mallory.AllocateProducer(t.Context()); err != nil || id.PID == pid {
		t.Errorf("mallory got %+v, %v", id, err)
	}
}

// TestTokenIsReplacedUnderLoad: a producer that reads its token from a file goes on when
// the token is replaced by another of its name and the old one revoked, under the same
// producer id.
func TestTokenIsReplacedUnderLoad(t *testing.T) {
	g := newLockedGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	first := g.token("--scope", "produce", "--name", "orders")
	write(first)
	g.restart(false)
	p := g.run("produce", "--topic", "t", "--token-file", file)
	lines := 0
	for round := range 4 {
		for range 20 {
			fmt.Fprintln(p.in, "line")
			lines++
		}
		waitForOffset(t, g, "t", int64(lines), nil)
		if round == 3 {
			break
		}
		next := g.token("--scope", "produce", "--name", "orders")
		write(next)
		time.Sleep(1100 * time.Millisecond) // the producer may use what it has read for a second
		g.admin("token", "revoke", first[len("oncelog_"):][:10])
		eventually(t, func() error {
			if _, err := g.as(first).Topic(t.Context(), "t"); err == nil {
				return errors.New("the old token is still taken")
			}
			return nil
		})
		first = next
	}
	p.wait(exitOK)
	list, err := g.client.Producers(t.Context(), producer.Page{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("producers: %+v, %v", list.Items, err)
	}
}

// TestAnonymousStaysOnThisMachine: an address that other machines can reach needs tokens
// or --insecure, which the log says aloud.
func TestAnonymousStaysOnThisMachine(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		out, err := exec.CommandContext(ctx, "oncelog", "serve", "--data", data, "--listen", address).CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != exitUsage || !strings.Contains(string(out), "there is no access control") || !strings.Contains(string(out), "--insecure") {
			t.Errorf("%s: %v\n%s", address, err, out)
		}
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a server that did not start has made a directory: %v", err)
	}
	aloud := func(g *gateway, words string) {
		t.Helper()
		eventually(t, func() error { // the line is on its way through a pipe
			if !strings.Contains(g.logs.tail(100), words) {
				return fmt.Errorf("the log does not say %q:\n%s", words, g.logs.tail(100))
			}
			return nil
		})
	}
	start := func(flags ...string) *gateway {
		g := &gateway{tb: t, data: filepath.Join(t.TempDir(), "data"), listen: "0.0.0.0:0", flags: flags}
		t.Cleanup(g.finish)
		return g
	}
	g := start("--insecure")
	g.start()
	aloud(g, "OTHER MACHINES CAN REACH THIS SERVER, AND THERE IS NO ACCESS CONTROL")
	g = start()
	g.token("--scope", "admin")
	g.start()
	aloud(g, "TOKENS TRAVEL UNENCRYPTED")
}

// TestForeignHostOnLoopback: a page of another site that has its name point to 127.0.0.1
// is told nothing.
func TestForeignHostOnLoopback(t *testing.T) {
	g := newGateway(t, "--allow-host", "log.internal")
	g.createTopic("t", 1, openapi.TopicConfig{})
	for host, want := range map[string]int{"evil.example": 403, "log.internal:80": 200, "localhost": 200, "": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/topics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Host %q: %d, want %d", host, resp.StatusCode, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestNoSecretIsLogged: everything is done with a token, with all log levels on, and
// neither the server nor any client command has written it anywhere.
func TestNoSecretIsLogged(t *testing.T) {
	g := newLockedGateway(t, "--log-level", "debug", "--quota-requests", "100000")
	token := strings.TrimPrefix(g.env[0], tokenVariable+"=")
	secret := token[len("oncelog_")+10:]
	var said strings.Builder
	run := func(in string, args ...string) {
		t.Helper()
		cmd := exec.Command("oncelog", args...)
		cmd.Env = append(append(os.Environ(), "ONCELOG_URL="+g.url), g.env...)
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		fmt.Fprintf(&said, "%s: %v\n%s", args, err, out)
	}
	run("", "topic", "create", "t")
	run("a\nb\n", "produce", "--topic", "t")
	run("", "consume", "--topic", "t", "--exit")
	run("", "producers", "list")
	run("", "producers", "show", "0")
	run("", "snapshots", "take")
	run("", "topic", "describe", "nothing")
	run("", "topic", "delete", "t")
	run("", "token", "list", "--data", g.data, "--output", "json")
	run("", "topic", "list", "--url", "http://127.0.0.1:1")
	for _, path := range []string{"/topics?token=" + token, "/events?ticket=" + token, "/nothing"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	g.signal(syscall.SIGHUP)
	wrong := token[:len(token)-1] + "A"
	if wrong == token {
		wrong = token[:len(token)-1] + "B"
	}
	_, err := g.as(wrong).Topic(t.Context(), "t")
	is(t, err, producer.CodeUnauthenticated)
	g.stop()
	for name, text := range map[string]string{"server": g.logs.tail(1 << 20), "clients": said.String(), "error": err.Error()} {
		if strings.Contains(text, secret[:16]) || strings.Contains(text, secret[10:]) {
			t.Errorf("the secret is in what the %s said:\n%s", name, text)
		}
	}
	if !strings.Contains(g.logs.tail(1<<20), `"principal":"root"`) {
		t.Error("the log does not say who called")
	}
}

// TestQuotaFlags: the defaults of all principals, and what a token has of its own.
func TestQuotaFlags(t *testing.T) {
	g := &gateway{tb: t, data: filepath.Join(t.TempDir(), "data"), listen: "127.0.0.1:0", flags: []string{"--quota-producers", "2"}}
	t.Cleanup(g.finish)
	plain := g.token("--scope", "produce", "--name", "plain")
	more := g.token("--scope", "produce", "--name", "more", "--quota-producers", "4", "--quota-requests", "1000")
	g.start()
	for token, quota := range map[string]int{plain: 2, more: 4} {
		c := g.as(token)
		for range quota {
			if _, err := c.AllocateProducer(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, err := c.AllocateProducer(t.Context())
		is(t, err, producer.CodeRateLimited)
		if e, ok := errors.AsType[*producer.Error](err); !ok || e.RetryAfter < time.Minute || !e.Retryable {
			t.Errorf("the refusal is %+v", err)
		}
	}
}

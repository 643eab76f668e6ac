package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
)

// benchProgress shows on a terminal what is measured and how fast it goes. A nil one
// shows nothing.
type benchProgress struct {
	bars  *mpb.Progress
	bar   *mpb.Bar
	state atomic.Pointer[bench.Progress] // written by the measurement, read by the bar
}

func newBenchProgress(std *stdio, name string) *benchProgress {
	if !isTerminal(std.err) {
		return nil
	}
	const width = 40
	p := &benchProgress{bars: mpb.New(mpb.WithOutput(std.err), mpb.WithWidth(width))}
	p.state.Store(&bench.Progress{})
	title := func(decor.Statistics) string { return name + " " + p.state.Load().Phase }
	rate := func(decor.Statistics) string {
		s := p.state.Load()
		return fmt.Sprintf("%.0f requests a second, %s left", s.RequestsPerSecond, max(0, s.Of-s.Done).Round(time.Second))
	}
	// Begun with a total of 0, it is not done and gone when one phase is.
	p.bar = p.bars.AddBar(0, mpb.PrependDecorators(decor.Any(title)), mpb.AppendDecorators(decor.Any(rate, decor.WCSyncSpace)), mpb.BarRemoveOnComplete())
	return p
}

// report takes the state of the measurement.
func (p *benchProgress) report(s bench.Progress) {
	if p == nil {
		return
	}
	p.state.Store(&s)
	p.bar.SetTotal(max(1, s.Of.Milliseconds()), false)
	p.bar.SetCurrent(min(s.Done, s.Of).Milliseconds())
}

// end takes the bar away.
func (p *benchProgress) end() {
	if p == nil {
		return
	}
	p.bar.Abort(true)
	p.bars.Wait()
}

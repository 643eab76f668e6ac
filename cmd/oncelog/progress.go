package main

import (
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows on a terminal how far long work has come. A nil one shows nothing.
type progress struct {
	bars *mpb.Progress
	bar  *mpb.Bar
}

// newProgress begins a bar on standard error; total 0 means that the end is not known.
// Where nobody looks, it gives nil.
func newProgress(std *stdio, title string, total int64) *progress {
	if total > 0 {
		return newBar(std, title, total, decor.CountersKibiByte("% .1f of % .1f", decor.WCSyncSpace), decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace))
	}
	return newBar(std, title, 0, decor.CurrentKibiByte("% .1f", decor.WCSyncSpace), decor.Elapsed(decor.ET_STYLE_GO, decor.WCSyncSpace))
}

// newCounter is newProgress for things that are no bytes.
func newCounter(std *stdio, title string) *progress {
	return newBar(std, title, 0, decor.CountersNoUnit("%d of %d", decor.WCSyncSpace), decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace))
}

// newBar begins a bar with what is shown behind it.
func newBar(std *stdio, title string, total int64, show ...decor.Decorator) *progress {
	if !isTerminal(std.err) {
		return nil
	}
	const width = 40
	p := &progress{bars: mpb.New(mpb.WithOutput(std.err), mpb.WithWidth(width))}
	p.bar = p.bars.AddBar(total, mpb.PrependDecorators(decor.Name(title)), mpb.AppendDecorators(show...), mpb.BarRemoveOnComplete())
	return p
}

// set moves the bar.
func (p *progress) set(done, total int64) {
	if p == nil {
		return
	}
	if total > 0 {
		p.bar.SetTotal(total, false)
	}
	p.bar.SetCurrent(done)
}

// end takes the bar away, so that what is printed next has the screen for itself.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.bar.Abort(true)
	p.bars.Wait()
}

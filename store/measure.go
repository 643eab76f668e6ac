package store

// Measure is a number that engines of one kind have and others do not, for metrics.
type Measure struct {
	// Name is in lower case with underscores, and says the unit, as Prometheus has it.
	Name string
	Help string
	// Counter says that it only grows, from 0 when the engine is opened.
	Counter bool
	Value   float64
}

// Measured is implemented by engines that have numbers of their own.
type Measured interface {
	// Measures gives them, always the same ones. It is cheap.
	Measures() []Measure
}

package main

import (
	"math"
	"runtime"
	"time"

	"example.com/shop/loadtest/machine"
	"example.com/shop/loadtest/report"
)

// meter measures what the load test itself uses from its start on.
type meter struct {
	began time.Time
	at    machine.Usage
}

func newMeter() meter { return meter{time.Now(), machine.Use()} }

// read returns nil where the system does not tell. withShops says whether the
// shops run in this process: then nobody can tell the two apart.
func (m meter) read(withShops bool) *report.Harness {
	now, took := machine.Use(), time.Since(m.began)
	if now == (machine.Usage{}) {
		return nil
	}
	cpu := now.CPU - m.at.CPU
	return &report.Harness{
		CPUSeconds:   math.Round(cpu.Seconds()*100) / 100,
		CPUShare:     math.Round(1000*cpu.Seconds()/took.Seconds()/float64(runtime.NumCPU())) / 1000,
		PeakMemoryMB: math.Round(float64(now.PeakMemory)/(1<<20)*10) / 10,
		WithShops:    withShops,
	}
}

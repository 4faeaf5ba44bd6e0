package journaltest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"starling/journal"
)

// Benchmark measures a backend; start is called once for every figure.
func Benchmark(b *testing.B, start func(testing.TB) Harness) {
	for _, shape := range []struct{ writers, bytes int }{
		{1, 256}, {10, 256}, {100, 256}, {1, 16 << 10}, {10, 16 << 10},
	} {
		b.Run(fmt.Sprintf("Append/writers=%d/bytes=%d", shape.writers, shape.bytes), func(b *testing.B) {
			benchmarkAppend(b, start(b), shape.writers, shape.bytes)
		})
	}
	b.Run("AppendToDelivered/bytes=256", func(b *testing.B) { benchmarkDelivery(b, start(b), 256) })
	b.Run("AppendToDelivered/bytes=16384", func(b *testing.B) { benchmarkDelivery(b, start(b), 16<<10) })
	b.Run("ReadFromStart/records=100000", func(b *testing.B) { benchmarkRead(b, start(b), 100_000) })
}

// benchmarkAppend has writers append b.N records in all, and tells how long a reader needs to catch up.
func benchmarkAppend(b *testing.B, h Harness, writers, bytes int) {
	j := h.open(b)
	read := count(b, j, b.N)
	b.SetBytes(int64(bytes))
	b.ResetTimer()
	appendConcurrently(b, j, writers, b.N, bytes)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	wrote := time.Now()
	<-read
	b.ReportMetric(float64(time.Since(wrote).Milliseconds()), "ms-reader-behind")
}

// appendConcurrently appends n records by some writers.
func appendConcurrently(b *testing.B, j journal.Journal, writers, n, bytes int) {
	var next atomic.Int64
	var writing sync.WaitGroup
	payload := make([]byte, bytes)
	for w := range writers {
		writing.Go(func() {
			writer := fmt.Sprintf("writer-%d", w)
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := j.Append(b.Context(), journal.Record{Writer: writer, Seq: uint64(i), Payload: payload}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
}

// count follows j from the start and closes the channel when n records were delivered.
func count(b *testing.B, j journal.Journal, n int) <-chan struct{} {
	ctx, cancel := context.WithCancel(b.Context())
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = j.Follow(ctx, 0, func(batch []journal.Record) error {
			if n -= len(batch); n == 0 {
				close(done)
			}
			return nil
		})
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
	return done
}

// benchmarkDelivery measures from Append to deliver, one record at a time.
func benchmarkDelivery(b *testing.B, h Harness, bytes int) {
	j := h.open(b)
	ctx, cancel := context.WithCancel(b.Context())
	delivered, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = j.Follow(ctx, 0, func(batch []journal.Record) error {
			for range batch {
				select {
				case delivered <- struct{}{}:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
	payload := make([]byte, bytes)
	for i := 1; b.Loop(); i++ {
		if err := j.Append(b.Context(), journal.Record{Writer: "w", Seq: uint64(i), Payload: payload}); err != nil {
			b.Fatal(err)
		}
		<-delivered
	}
}

// benchmarkRead measures reading n records of 256 bytes from the start, by a process that has just begun.
func benchmarkRead(b *testing.B, h Harness, n int) {
	appendConcurrently(b, h.open(b), 50, n, 256)
	for b.Loop() {
		<-count(b, h.open(b), n)
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

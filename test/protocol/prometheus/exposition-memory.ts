/**
 * Fills expositions, each in a form of its own, and prints what each takes of the heap, per sample: the most after a collection
 * while it is filled and written, and what it says of itself. It is a process of its own, since memory is measured.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Exposition } from '../../../protocol/prometheus/exposition.ts'

export interface ExpositionMemory {
  readonly most: number
  readonly said: number
}

const SAMPLES = 20_000
/** Collections take long: the heap is looked at once in so many steps of the text. */
const STEPS = 200
const gauge = { type: 'gauge', help: '', unit: '' } as const
const histogram = { ...gauge, type: 'histogram' } as const

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

function heap(): number {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

const forms: Readonly<Record<string, (exposition: Exposition, index: number) => void>> = {
  'a metric each'(exposition, index) {
    const metric = `gmetric.metric.${index}`
    exposition.samples(`gmetric_metric_${index}`, gauge, metric).number([['host', 'web1.example.org']], index)
  },
  'a metric and a host each'(exposition, index) {
    const metric = `gmetric.metric.${index}`
    exposition.samples(`gmetric_metric_${index}`, gauge, metric).number([['host', `web${index}.example.org`]], index)
  },
  'a host each'(exposition, index) {
    exposition.samples('gmetric_load', gauge, 'gmetric.load').number([['host', `web${index}.example.org`]], index)
  },
  'fifty metrics of each host, host by host'(exposition, index) {
    const [metric, host] = [index % 50, Math.floor(index / 50)]
    const samples = exposition.samples(`gmetric_${metric}`, gauge, `gmetric.${metric}`)
    samples.number([['host', `web${host}.example.org`]], index)
  },
  'metrics whose names become one'(exposition, index) {
    exposition.samples('gmetric_load', gauge, `gmetric.load.${index}`).number([['host', 'web1.example.org']], index)
  },
  'ten buckets of each host'(exposition, index) {
    const [bucket, host] = [index % 10, Math.floor(index / 10)]
    const labels = [
      ['host', `web${host}.example.org`],
      ['le', bucket === 9 ? '+Inf' : String(bucket)],
    ] as const
    exposition.part('h_bucket', histogram, 'prometheus.h_bucket', { labels, value: bucket, time: undefined })
  },
}

function memoryOf(fill: (exposition: Exposition, index: number) => void): ExpositionMemory {
  const before = heap()
  const exposition = new Exposition('prometheus')
  for (let index = 0; index < SAMPLES; index++) fill(exposition, index)
  let most = heap()
  let steps = 0
  for (const piece of exposition.text()) {
    if (piece === undefined && ++steps % STEPS === 0) most = Math.max(most, heap())
  }
  return { most: (most - before) / SAMPLES, said: exposition.bytes / SAMPLES }
}

const found: Record<string, ExpositionMemory> = {}
for (const [form, fill] of Object.entries(forms)) found[form] = memoryOf(fill)
console.log(JSON.stringify(found))

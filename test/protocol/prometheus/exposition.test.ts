/** The text formats of Prometheus: the examples of their specifications, and what promtool says of what is written. */
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { Exposition, type ExpositionFormat, labelsText } from '../../../protocol/prometheus/exposition.ts'
import { prometheusLabel, prometheusName } from '../../../protocol/prometheus/names.ts'

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
const gauge = { type: 'gauge', help: '', unit: '' } as const
const counter = { type: 'counter', help: '', unit: '' } as const

function textOf(exposition: Exposition): string {
  return [...exposition.text()].join('')
}

/** What promtool objects to; it reads the text with the parser of Prometheus. */
function objections(text: string): string {
  const { stderr, stdout } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
  return stdout + stderr
}

function written(format: ExpositionFormat, fill: (exposition: Exposition) => void): string {
  const exposition = new Exposition(format)
  fill(exposition)
  return textOf(exposition)
}

describe('names', () => {
  // "Data model": metric names match [a-zA-Z_:][a-zA-Z0-9_:]*, label names [a-zA-Z_][a-zA-Z0-9_]*, those with __ are internal.
  it.each([
    ['gmetric.load_one', 'gmetric_load_one'],
    ['5xx', '_5xx'],
    ['a:b', 'a:b'],
    ['smon.größe 😀', 'smon_gr__e__'],
  ])('of the metric %s is %s', (name, shown) => expect(prometheusName(name)).toBe(shown))
  it.each([
    ['service.name', 'service_name'],
    ['a:b', 'a_b'],
    ['__name__', '_name__'],
    ['1', '_1'],
  ])('of the label %s is %s', (name, shown) => expect(prometheusLabel(name)).toBe(shown))
})

describe('labels', () => {
  it('are escaped as both specifications say', () => {
    expect(
      labelsText([
        ['path', 'C:\\DIR\\FILE.TXT'],
        ['error', 'Cannot find file:\n"FILE.TXT"'],
      ]),
    ).toBe(
      // The example of the text format, prometheus.io/docs/instrumenting/exposition_formats.
      'path="C:\\\\DIR\\\\FILE.TXT",error="Cannot find file:\\n\\"FILE.TXT\\""',
    )
  })

  it('without a text are none, and those whose names become one share it', () => {
    expect(
      labelsText([
        ['index', ''],
        ['a.b', '1'],
        ['a_b', '2'],
      ]),
    ).toBe('a_b="1;2"')
  })
})

describe('the text of Prometheus', () => {
  it('has the examples of its specification', () => {
    const text = written('prometheus', (exposition) => {
      const help = 'The total number of HTTP requests.'
      const requests = exposition.samples('http_requests', { type: 'counter', help, unit: '' }, 'http.requests')
      requests.number('method="post",code="200"', 1027, 1_395_066_363_000_000)
      requests.number('method="post",code="400"', 3n, 1_395_066_363_000_000)
      const strange = exposition.samples('something_weird', { ...gauge, type: 'unknown' }, 'something.weird')
      strange.number('problem="division by zero"', Number.POSITIVE_INFINITY, -3_982_045_000)
      exposition.samples('metric_without_timestamp_and_labels', gauge, 'm').number('', 12.47)
      const about = 'A histogram of the request duration.'
      const bounds = [0.05, 0.1, 0.2, 0.5, 1]
      const counts = [24_054n, 9_390n, 66_948n, 28_997n, 4_599n, 10_332n]
      exposition
        .samples('http_request_duration_seconds', { type: 'histogram', help: about, unit: 's' }, 'h')
        .histogram('', { bounds, counts, count: 144_320n, sum: 53_423 })
      exposition
        .samples(
          'rpc_duration_seconds',
          { type: 'summary', help: 'A summary of the RPC duration in seconds.', unit: 's' },
          'r',
        )
        .summary('', { quantiles: [0.01, 0.05], values: [3102, 3272], count: 2693n, sum: 17_560_473 })
    })
    expect(text).toBe(`# HELP http_request_duration_seconds A histogram of the request duration.
# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{le="0.05"} 24054
http_request_duration_seconds_bucket{le="0.1"} 33444
http_request_duration_seconds_bucket{le="0.2"} 100392
http_request_duration_seconds_bucket{le="0.5"} 129389
http_request_duration_seconds_bucket{le="1"} 133988
http_request_duration_seconds_bucket{le="+Inf"} 144320
http_request_duration_seconds_count 144320
http_request_duration_seconds_sum 53423
# HELP http_requests_total The total number of HTTP requests.
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{method="post",code="400"} 3 1395066363000
# TYPE metric_without_timestamp_and_labels gauge
metric_without_timestamp_and_labels 12.47
# HELP rpc_duration_seconds A summary of the RPC duration in seconds.
# TYPE rpc_duration_seconds summary
rpc_duration_seconds{quantile="0.01"} 3102
rpc_duration_seconds{quantile="0.05"} 3272
rpc_duration_seconds_count 2693
rpc_duration_seconds_sum 17560473
# TYPE something_weird untyped
something_weird{problem="division by zero"} +Inf -3982045
`)
  })

  it('is empty if nothing was added', () => {
    expect(written('prometheus', (exposition) => void exposition.samples('x', gauge, 'x'))).toBe('')
    expect(written('openmetrics', (exposition) => void exposition.samples('x', gauge, 'x'))).toBe('# EOF\n')
  })
})

describe('the text of OpenMetrics', () => {
  it('has families without _total, UNIT where the name ends in it, seconds, and an end', () => {
    const text = written('openmetrics', (exposition) => {
      const seconds = {
        type: 'counter',
        help: 'Total user and system CPU time spent in "seconds".',
        unit: 's',
      } as const
      // The form of the example in "Overall Structure" of the specification.
      exposition.samples('process_cpu_seconds', seconds, 'p').number('', 4.203, 1_520_430_000_123_000)
      exposition.samples('queue_length', { ...gauge, unit: 's' }, 'q').number('', true)
      exposition
        .samples('h', { type: 'histogram', help: '', unit: '' }, 'h')
        .histogram('a="b"', { bounds: [1, 2.5], counts: [1n, 0n, 2n], count: 3n, sum: undefined })
    })
    expect(text).toBe(`# TYPE h histogram
h_bucket{a="b",le="1.0"} 1
h_bucket{a="b",le="2.5"} 1
h_bucket{a="b",le="+Inf"} 3
h_count{a="b"} 3
# HELP process_cpu_seconds Total user and system CPU time spent in \\"seconds\\".
# TYPE process_cpu_seconds counter
# UNIT process_cpu_seconds seconds
process_cpu_seconds_total 4.203 1520430000.123000
# TYPE queue_length gauge
queue_length 1
# EOF
`)
  })
})

describe('a family', () => {
  it('has one sample for the same labels, and counts the others', () => {
    const exposition = new Exposition('prometheus')
    for (const value of [1, 2]) exposition.samples('a', gauge, 'a').number('host="x"', value)
    expect(textOf(exposition)).toBe('# TYPE a gauge\na{host="x"} 1\n')
    expect(exposition.repeated).toBe(1)
  })

  it('tells metrics apart whose names became one', () => {
    const text = written('prometheus', (exposition) => {
      exposition.samples('a_b', gauge, 'a.b').number('', 1)
      exposition.samples('a_b', gauge, 'a_b').number('host="x"', 2)
      exposition.samples('a_b', gauge, 'a"b').number('', 3)
    })
    expect(text).toBe(
      '# TYPE a_b gauge\na_b{cinnabar_name="a.b"} 1\na_b{cinnabar_name="a_b",host="x"} 2\na_b{cinnabar_name="a\\"b"} 3\n',
    )
  })

  it('has one type: unknown where sources differ', () => {
    const both = (format: ExpositionFormat): string =>
      written(format, (exposition) => {
        exposition.samples('a', gauge, 'a').number('host="x"', 1)
        exposition.samples('a', counter, 'a').number('host="y"', 2)
      })
    expect(both('prometheus')).toBe('# TYPE a untyped\na{host="x"} 1\na{host="y"} 2\n')
    expect(both('openmetrics')).toBe('# TYPE a unknown\na{host="x"} 1\na{host="y"} 2\n# EOF\n')
  })

  it('of a counter takes no second one whose name is that of its samples', () => {
    const text = written('openmetrics', (exposition) => {
      exposition.samples('a', counter, 'a').number('', 1)
      exposition.samples('a_total', gauge, 'a.total').number('', 2)
    })
    expect(text).toBe('# TYPE a unknown\na{cinnabar_name="a"} 1\na{cinnabar_name="a.total"} 2\n# EOF\n')
  })

  it('does not repeat _total', () => {
    expect(written('prometheus', (exposition) => exposition.samples('a_total', counter, 'a').number('', 1))).toBe(
      '# TYPE a_total counter\na_total 1\n',
    )
  })
})

describe('a text that becomes too long', () => {
  it('is not finished, and says so', () => {
    const exposition = new Exposition('prometheus', 1000)
    const samples = exposition.samples('a', gauge, 'a')
    for (let host = 0; host < 1000; host++) samples.number(`host="${host}"`, host)
    expect(exposition.isFull).toBe(true)
    expect(textOf(exposition).length).toBeLessThan(1100)
  })
})

// promtool comes with Debian's package prometheus.
describe.skipIf(!hasPromtool)('promtool (apt install prometheus)', () => {
  it('reads everything, hostile names and texts too', () => {
    const hostile = [
      '<img onerror>',
      '\u202eright to left',
      'a'.repeat(240),
      '"',
      '\\',
      '\n',
      '\r',
      '{}',
      ' ',
      '#',
      '\u{1f600}',
    ]
    const text = written('prometheus', (exposition) => {
      for (const name of hostile) {
        const help = `Help of ${name}`
        const samples = exposition.samples(prometheusName(`x.${name}`), { type: 'gauge', help, unit: '' }, `x.${name}`)
        for (const value of [Number.NaN, 1e300, -0, 5e-324]) {
          samples.number(
            labelsText([
              [name, name],
              ['value', String(value)],
            ]),
            value,
          )
        }
      }
    })
    expect(objections(text)).toBe('')
  })
})

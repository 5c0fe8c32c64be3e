/** The text formats of Prometheus: the examples of their specifications, and what promtool says of what is written. */
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { Exposition } from '../../../protocol/prometheus/exposition.ts'
import { labelsText, prometheusLabels } from '../../../protocol/prometheus/labels.ts'
import { prometheusLabel, prometheusName } from '../../../protocol/prometheus/names.ts'
import type { ExpositionFormat } from '../../../protocol/prometheus/samples.ts'

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

describe('numbers', () => {
  // Go's FormatFloat, which Prometheus writes with, and reads with ParseFloat.
  it.each([
    [0, '0'],
    [-0, '-0'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, '+Inf'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
    [5e-324, '5e-324'],
    [0n, '0'],
    [2n ** 64n, '18446744073709551616'],
  ])('%s is %s', (number, shown) => {
    const text = written('prometheus', (exposition) => exposition.samples('x', gauge, 'x').number([], number))
    expect(text).toBe(`# TYPE x gauge\nx ${shown}\n`)
  })
})

describe('labels', () => {
  it('are escaped as both specifications say', () => {
    expect(
      labelsText(
        prometheusLabels([
          ['path', 'C:\\DIR\\FILE.TXT'],
          ['error', 'Cannot find file:\n"FILE.TXT"'],
        ]),
      ),
    ).toBe(
      // The example of the text format, prometheus.io/docs/instrumenting/exposition_formats.
      'path="C:\\\\DIR\\\\FILE.TXT",error="Cannot find file:\\n\\"FILE.TXT\\""',
    )
  })

  it('without a text are none, and those whose names become one share it', () => {
    expect(
      labelsText(
        prometheusLabels([
          ['index', ''],
          ['a.b', '1'],
          ['a_b', '2'],
        ]),
      ),
    ).toBe('a_b="1;2"')
  })
})

describe('the text of Prometheus', () => {
  it('has the examples of its specification', () => {
    const text = written('prometheus', (exposition) => {
      const help = 'The total number of HTTP requests.'
      const requests = exposition.samples('http_requests', { type: 'counter', help, unit: '' }, 'http.requests')
      requests.number(
        [
          ['method', 'post'],
          ['code', '200'],
        ],
        1027,
        1_395_066_363_000_000,
      )
      requests.number(
        [
          ['method', 'post'],
          ['code', '400'],
        ],
        3n,
        1_395_066_363_000_000,
      )
      const strange = exposition.samples('something_weird', { ...gauge, type: 'unknown' }, 'something.weird')
      strange.number([['problem', 'division by zero']], Number.POSITIVE_INFINITY, -3_982_045_000)
      exposition.samples('metric_without_timestamp_and_labels', gauge, 'm').number([], 12.47)
      const about = 'A histogram of the request duration.'
      const bounds = [0.05, 0.1, 0.2, 0.5, 1]
      const counts = [24_054n, 9_390n, 66_948n, 28_997n, 4_599n, 10_332n]
      exposition
        .samples('http_request_duration_seconds', { type: 'histogram', help: about, unit: 's' }, 'h')
        .histogram([], { bounds, counts, count: 144_320n, sum: 53_423 })
      exposition
        .samples(
          'rpc_duration_seconds',
          { type: 'summary', help: 'A summary of the RPC duration in seconds.', unit: 's' },
          'r',
        )
        .summary([], { quantiles: [0.01, 0.05], values: [3102, 3272], count: 2693n, sum: 17_560_473 })
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
      exposition.samples('process_cpu_seconds', seconds, 'p').number([], 4.203, 1_520_430_000_123_000)
      exposition.samples('queue_length', { ...gauge, unit: 's' }, 'q').number([], true)
      exposition
        .samples('h', { type: 'histogram', help: '', unit: '' }, 'h')
        .histogram([['a', 'b']], { bounds: [1, 2.5], counts: [1n, 0n, 2n], count: 3n, sum: undefined })
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
    for (const value of [1, 2]) exposition.samples('a', gauge, 'a').number([['host', 'x']], value)
    expect(textOf(exposition)).toBe('# TYPE a gauge\na{host="x"} 1\n')
    expect(exposition.repeated).toBe(1)
  })

  it('tells metrics apart whose names became one', () => {
    const text = written('prometheus', (exposition) => {
      exposition.samples('a_b', gauge, 'a.b').number([], 1)
      exposition.samples('a_b', gauge, 'a_b').number([['host', 'x']], 2)
      exposition.samples('a_b', gauge, 'a"b').number([], 3)
    })
    expect(text).toBe('# TYPE a_b gauge\na_b 3\na_b{cinnabar_name="a.b"} 1\na_b{cinnabar_name="a_b",host="x"} 2\n')
  })

  it('has one type: unknown where sources differ', () => {
    const both = (format: ExpositionFormat): string =>
      written(format, (exposition) => {
        exposition.samples('a', gauge, 'a').number([['host', 'x']], 1)
        exposition.samples('a', counter, 'a').number([['host', 'y']], 2)
      })
    expect(both('prometheus')).toBe('# TYPE a untyped\na{host="x"} 1\na{host="y"} 2\n')
    expect(both('openmetrics')).toBe('# TYPE a unknown\na{host="x"} 1\na{host="y"} 2\n# EOF\n')
  })

  it('of a counter takes no second one whose name is that of its samples', () => {
    const text = written('openmetrics', (exposition) => {
      exposition.samples('a', counter, 'a').number([], 1)
      exposition.samples('a_total', gauge, 'a.total').number([], 2)
    })
    expect(text).toBe('# TYPE a counter\na_total 1\na_total{cinnabar_name="a.total"} 2\n# EOF\n')
  })

  it('keeps a label that is called as the one which tells metrics apart', () => {
    const text = written('prometheus', (exposition) => {
      exposition.samples('a_b', gauge, 'a.b').number([['cinnabar_name', 'a_b']], 1)
      exposition.samples('a_b', gauge, 'a_b').number([], 2)
    })
    expect(text).toBe('# TYPE a_b gauge\na_b{cinnabar_name="a_b"} 1\na_b{cinnabar_name_="a_b"} 2\n')
  })

  it('of one shape has no sample of another: what comes later by its name gets another one', () => {
    const text = written('prometheus', (exposition) => {
      const buckets = { bounds: [1], counts: [1n, 0n], count: 1n, sum: 2 }
      exposition.samples('h', { ...gauge, type: 'histogram' }, 'h').histogram([], buckets)
      exposition.samples('h_count', gauge, 'h.count').number([], 42)
    })
    expect(text).toBe(
      '# TYPE cinnabar_h_count gauge\ncinnabar_h_count{cinnabar_name="h.count"} 42\n' +
        '# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_count 1\nh_sum 2\n',
    )
  })

  it('of a histogram or summary keeps labels called `le` and `quantile` under the names that Prometheus gives them', () => {
    const text = written('prometheus', (exposition) => {
      const histogram = exposition.samples('h', { ...gauge, type: 'histogram' }, 'h')
      const buckets = { bounds: [], counts: [], count: 1n, sum: undefined }
      histogram.histogram([['le', 'x']], buckets)
      histogram.histogram([['exported_le', 'x']], buckets)
      const summary = { quantiles: [0.5], values: [3], count: 1n, sum: undefined }
      exposition.samples('s', { ...gauge, type: 'summary' }, 's').summary([['quantile', '0.9']], summary)
    })
    expect(text).toBe(
      '# TYPE h histogram\nh_bucket{exported_le="x",le="+Inf"} 1\nh_count{exported_le="x"} 1\n' +
        'h_bucket{exported_exported_le="x",le="+Inf"} 1\nh_count{exported_exported_le="x"} 1\n' +
        '# TYPE s summary\ns{exported_quantile="0.9",quantile="0.5"} 3\ns_count{exported_quantile="0.9"} 1\n',
    )
  })

  it('of a histogram has no bucket that is smaller than one before, whatever its count is', () => {
    const text = written('prometheus', (exposition) => {
      const buckets = { bounds: [1, 2], counts: [5n, 10n, 20n], count: 10n, sum: undefined }
      exposition.samples('h', { ...gauge, type: 'histogram' }, 'h').histogram([], buckets)
    })
    expect(text).toContain('h_bucket{le="2"} 15\nh_bucket{le="+Inf"} 15\nh_count 15\n')
  })

  it('does not repeat _total', () => {
    expect(written('prometheus', (exposition) => exposition.samples('a_total', counter, 'a').number([], 1))).toBe(
      '# TYPE a_total counter\na_total 1\n',
    )
  })
})

describe('what came from Prometheus', () => {
  const native = (metric: string) => ({ metric: `prometheus.${metric}`, isNative: true })
  const histogram = { type: 'histogram', help: 'How long.', unit: '' } as const
  const bucket = (le: string, value: number) => ({ labels: [['le', le]] as const, value, time: undefined })
  const fill = (exposition: Exposition, buckets: readonly (readonly [string, number])[]): void => {
    for (const [le, value] of buckets) exposition.part('h_bucket', histogram, 'prometheus.h_bucket', bucket(le, value))
    exposition.part('h_count', histogram, 'prometheus.h_count', { labels: [], value: 3, time: undefined })
    exposition.part('h_sum', histogram, 'prometheus.h_sum', { labels: [], value: 4.5, time: undefined })
  }

  it('has its own names: a gauge and a counter of nearly the same name stay two', () => {
    const fill = (exposition: Exposition): void => {
      exposition.samples('x', gauge, native('x')).number([], 1)
      exposition.samples('x_total', counter, native('x_total')).number([], 2)
      exposition.samples('y', counter, native('y')).number([], 3)
      exposition.samples('z_total', counter, native('z_total')).number([], 4)
    }
    expect(written('prometheus', fill)).toBe(
      '# TYPE x gauge\nx 1\n# TYPE x_total counter\nx_total 2\n# TYPE y counter\ny 3\n# TYPE z_total counter\nz_total 4\n',
    )
    // A counter of OpenMetrics is called without `_total`, and its samples are not.
    expect(written('openmetrics', fill)).toBe(
      '# TYPE x gauge\nx 1\n# TYPE x_total unknown\nx_total 2\n# TYPE y unknown\ny 3\n# TYPE z counter\nz_total 4\n# EOF\n',
    )
  })

  it('keeps the name that another metric has become, and the other is marked', () => {
    const text = written('prometheus', (exposition) => {
      exposition.samples('gmetric_a', gauge, 'gmetric.a').number([], 1)
      exposition.samples('gmetric_a', counter, native('gmetric_a')).number([], 2)
    })
    expect(text).toBe('# TYPE gmetric_a counter\ngmetric_a 2\ngmetric_a{cinnabar_name="gmetric.a"} 1\n')
  })

  it('is a histogram again, its buckets in order', () => {
    const text = written('prometheus', (exposition) =>
      fill(exposition, [
        ['+Inf', 3],
        ['10', 2],
        ['2.50', 1],
      ]),
    )
    expect(text).toBe(
      '# HELP h How long.\n# TYPE h histogram\nh_bucket{le="2.50"} 1\nh_bucket{le="10"} 2\nh_bucket{le="+Inf"} 3\nh_count 3\nh_sum 4.5\n',
    )
  })

  it.each([
    ['has no bucket up to infinity', [['1', 3]]],
    [
      'has a bucket that is smaller than one before',
      [
        ['1', 4],
        ['+Inf', 3],
      ],
    ],
    [
      'has a bound that is no number',
      [
        ['x', 1],
        ['+Inf', 3],
      ],
    ],
    [
      'has a bound twice',
      [
        ['1', 1],
        ['1.0', 1],
        ['+Inf', 3],
      ],
    ],
  ] as const)('is untyped if it %s', (_, buckets) => {
    const text = written('prometheus', (exposition) => fill(exposition, buckets))
    expect(text).toContain('# TYPE h_bucket untyped\n')
    expect(text).toContain('# TYPE h_count untyped\nh_count 3\n')
    for (const [le, value] of buckets) expect(text).toContain(`h_bucket{le="${le}"} ${value}\n`)
  })

  it('is a histogram though its samples were selected twice, and these are counted', () => {
    const exposition = new Exposition('prometheus')
    for (const _ of [1, 2])
      fill(exposition, [
        ['1', 2],
        ['+Inf', 3],
      ])
    const once = new Exposition('prometheus')
    fill(once, [
      ['1', 2],
      ['+Inf', 3],
    ])
    expect(textOf(exposition)).toBe(textOf(once))
    expect(exposition.repeated).toBe(4)
  })

  it('is put together in steps: others have their turn in between', () => {
    const exposition = new Exposition('prometheus')
    for (let host = 0; host < 500; host++) {
      const sample = {
        labels: [
          ['le', '+Inf'],
          ['host', String(host)],
        ] as const,
        value: 1,
        time: undefined,
      }
      exposition.part('h_bucket', histogram, 'prometheus.h_bucket', sample)
    }
    expect([...exposition.settle()].length).toBeGreaterThanOrEqual(500)
    expect(textOf(exposition)).toContain('# TYPE h histogram\n')
  })

  it('is untyped if another metric of Prometheus has a name of the histogram', () => {
    const text = written('prometheus', (exposition) => {
      fill(exposition, [['+Inf', 3]])
      exposition.samples('h', gauge, native('h')).number([], 1)
    })
    expect(text).toContain('# TYPE h gauge\nh 1\n')
    expect(text).toContain('# TYPE h_bucket untyped\nh_bucket{le="+Inf"} 3\n')
  })
})

describe('a text that becomes too long', () => {
  it('is not finished, and says so', () => {
    const exposition = new Exposition('prometheus', 1000)
    const samples = exposition.samples('a', gauge, 'a')
    for (let host = 0; host < 1000; host++) samples.number([['host', String(host)]], host)
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
            [
              [name, name],
              ['value', String(value)],
            ],
            value,
          )
        }
      }
    })
    expect(objections(text)).toBe('')
  })
})

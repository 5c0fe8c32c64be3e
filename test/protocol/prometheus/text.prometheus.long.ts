/** Debian's Prometheus agrees about lines: both take them or both refuse them, but for those that are listed here with the reason. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { contentTypes } from '../../../protocol/prometheus/exposition.ts'
import { readSeries, type TextFormat } from '../../../protocol/prometheus/text-line.ts'
import { eventually } from '../../support/eventually.ts'
import { hasPrometheus, RealPrometheus } from '../../support/real-prometheus.ts'
import { TextReader } from '../../support/text-samples.ts'

interface Texts {
  /** Both take them, or both refuse them. */
  readonly alike: readonly string[]
  /** Only this server takes them. */
  readonly lenient: readonly string[]
  /** Only Prometheus takes them. */
  readonly strict: readonly string[]
}

const PLAIN: Texts = {
  alike: [
    ...['\t# x\na 1\n', ' # x\n', '  \na 1\n', '\n\na 1\n', '#\n', '#x\n', 'a 1 \n', 'a  1\n', 'a\t1\n'],
    ...['a{} 1\n', 'a{ } 1\n', 'a{a="b",} 1\n', 'a{,} 1\n', 'a{a="b",,} 1\n', 'a{a = "b"} 1\n', 'a {a="b"} 1\n'],
    ...[
      'a{a="b"}1\n',
      'a{__name__="b"} 1\n',
      'a{a="x",a="y"} 1\n',
      'a{a="\\\\"} 1\n',
      'a{a="\\""} 1\n',
      'a{a="\\x"} 1\n',
    ],
    ...['a\r1\n', 'a 1\r2\n', '\ra 1\n', 'a 1\rb 2\n', 'a{a="b",\rb="c"} 1\n', 'a 1\r\r\n'],
    ...['a{a="\r"} 1\n', 'a{a="\\"} 1\n', 'a 1 1 1\n', 'a 1 1.5\n', 'a 1 1e3\n', 'a', 'a 1', 'a\n', '{a="b"} 1\n'],
    ...['{__name__="a"} 1\n', '1a 1\n', 'a-b 1\n', 'é 1\n', 'a{é="x"} 1\n', 'a{1="x"} 1\n', 'a{a:b="x"} 1\n'],
    ...[
      '# TYPE a\n',
      '# TYPE a foo\n',
      '#TYPE a foo\n',
      '# HELP a\n',
      '# HELP\n',
      '# TYPE\n',
      '# HELP 1 x\n',
      '# UNIT a b\n',
    ],
    ...['# TYPE a gauge\n# TYPE a counter\na 1\n', 'a 1\n# TYPE a gauge\n', 'a 1 # {a="b"} 1\n', 'a NaN\na 1\n'],
    ...[
      'a{a="\0"} 1\n',
      '\ufeffa 1\n',
      'a +NaN\n',
      'a 1_0\n',
      'a 0x1\n',
      'a 07\n',
      'a 1e400\n',
      'a 1e-400\n',
      'a infinit\n',
    ],
    ...[
      'a 1e\n',
      'a .\n',
      'a{a="b"}\n',
      'a{a="b\n',
      'a{a}\n',
      'a{a=b} 1\n',
      'a{a="é"} 1\n',
      '# EOF\na 1\n',
      ': 1\n',
      'a=1\n',
    ],
  ],
  lenient: [
    // "Leading and trailing whitespace is ignored", and there may be any number of blanks and tabs.
    ...['\ta 1\n', ' a 1\n', '# TYPE a gauge \n', '# TYPE  a  gauge\n'],
    // As some programs on Windows end lines.
    ...['a 1\r\n', 'a 1 \r\n', '\r\n', 'a 1 2\r\n', '# TYPE a gauge\r\n'],
    // A timestamp is an integer of 64 bits; what is no time of a value costs this sample.
    ...['a 1 -1\n', 'a 1 +1\n', 'a 1 99999999999999999999\n'],
    // Prometheus takes names in quotes from its version 3 on.
    ...['{"a"} 1\n', '{"a",b="c"} 1\n', 'a{"b"="c"} 1\n'],
  ],
  // Between two labels there is a comma, a line feed in a text is `\n`, a name ends at a blank, and nothing ends a text before its end.
  strict: ['# HELP a-b x\n', '# TYPE a\rgauge\n', 'a{a="b" b="c"} 1\n', 'a{a="\n"} 1\n', 'a 1\n\0\n'],
}

const END = '# EOF\n'
const OPEN: Texts = {
  alike: [
    ...[END, '# EOF', 'a 1\n', `a 1\n${END}`, `a 1 # EOF\n`, `${END}a 1\n`, '# EOFx\n', '#EOF\n', 'a 1\n# EOF x\n'],
    ...[
      'a{} 1\n',
      'a{,} 1\n',
      'a{a="x",a="y"} 1\n',
      'a{a="\\x"} 1\n',
      'a 1 1.5\n',
      'a 1 1e3\n',
      'a 1 NaN\n',
      'a 1 1_0\n',
    ],
    ...[
      '# TYPE a gauge\n',
      '# TYPE a foo\n',
      '# TYPE a stateset\n',
      '# TYPE a gaugehistogram\n',
      '# TYPE a\n',
      '# HELP a x\n',
    ],
    ...[
      '# HELP a "x"\n',
      '# UNIT a_b b\n',
      '# UNIT a b\n',
      '# TYPE a gauge\n# TYPE a counter\n',
      '{"a\n',
      'a{é="x"} 1\n',
    ],
    ...['x_total 1 # {a="b"} 1\n', 'x_total 1 # {} 1\n', 'x_total 1 # {a="b"}\n', 'x_total 1 # {a="b"} 1 2\n'],
    ...['x_total 1 # {a="b"} 1 2 3\n', 'x_total 1 # {1="b"} 1\n', 'x_total 1 # a 1\n'],
    ...[
      'x_total 1 # {a\\="b"} 1\n',
      'x_total 1 2 # {a="b"} 1\n',
      'x_total 1 # {a="b"} x\n',
      'x_total 1 # {a="b"} NaN\n',
    ],
    ...[
      'a +1\n',
      'a 1.\n',
      'a .5\n',
      'a Infinity\n',
      'a nan\n',
      'a +NaN\n',
      'a 0x1\n',
      'a{__name__="b"} 1\n',
      '1a 1\n',
    ],
  ].map((text) => (text.includes('EOF') || text === 'a 1\n' ? text : text + END)),
  lenient: [
    // OpenMetrics has one blank in each place where 0.0.4 has any number, and no comments of people.
    ...['\n', '# x\n', '#\n', '\ta 1\n', 'a 1 \n', 'a  1\n', 'a\t1\n', 'a{ } 1\n', 'a{a="b",} 1\n', 'a{a = "b"} 1\n'],
    ...['a {a="b"} 1\n', 'a{a="b"}1\n', 'a 1  1.5\n', 'a 1\r\n', '# TYPE  a gauge\n', '# HELP a\n', '#HELP a x\n'],
    ...['x_total 1 #{a="b"} 1\n', 'x_total 1 # {a="b",} 1\n', '# TYPE a untyped\n'],
    // Any series may have an exemplar for Prometheus from its version 2.43 on.
    ...['a 1 # {a="b"} 1\n'],
    ...['{"a"} 1\n', 'a{"b"="c"} 1\n'],
  ].map((text) => text + END),
  // No label stands twice, also in an exemplar.
  strict: [`x_total 1 # {a="b",a="c"} 1\n${END}`],
}

function isTaken(format: TextFormat, text: string): boolean {
  try {
    for (const { series } of new TextReader(format).read(text).samples) readSeries(series)
    return true
  } catch {
    return false
  }
}

// prometheus comes with Debian's package prometheus.
test.skipIf(!hasPrometheus)('lines (apt install prometheus)', async () => {
  const all = [
    { format: 'prometheus', texts: PLAIN },
    { format: 'openmetrics', texts: OPEN },
  ] as const
  const cases = all.flatMap(({ format, texts }) =>
    Object.values(texts).flatMap((some: readonly string[]) => some.map((text) => ({ format, text }))),
  )
  const targets = createServer((request, response) => {
    const at = Number(request.url?.slice(1))
    const { format, text } = cases[at] ?? { format: 'prometheus', text: '' }
    response.writeHead(200, { 'content-type': contentTypes[format] }).end(text)
  })
  targets.listen(0, '127.0.0.1')
  await once(targets, 'listening')
  const { port } = targets.address() as AddressInfo
  const prometheus = await RealPrometheus.start({
    global: { scrape_interval: '500ms', scrape_timeout: '500ms' },
    scrape_configs: cases.map((_, at) => ({
      job_name: String(at),
      metrics_path: `/${at}`,
      static_configs: [{ targets: [`127.0.0.1:${port}`] }],
    })),
  })
  try {
    const scrapes = await eventually(async () => {
      const found = await prometheus.scrapes()
      expect([...found.values()].filter(({ isLate }) => !isLate)).toHaveLength(cases.length)
      return found
    })
    const verdict = (format: TextFormat, text: string): string => {
      const at = cases.findIndex((one) => one.format === format && one.text === text)
      const [ours, theirs] = [isTaken(format, text), scrapes.get(String(at))?.problem === '']
      return ours === theirs ? 'alike' : ours ? 'lenient' : 'strict'
    }
    for (const { format, texts } of all) {
      for (const [expected, some] of Object.entries(texts)) {
        const wrong = some.filter((text: string) => verdict(format, text) !== expected)
        expect(wrong, `${format}: ${expected}`).toEqual([])
      }
    }
  } finally {
    await prometheus.stop()
    targets.close()
    targets.closeAllConnections()
  }
})

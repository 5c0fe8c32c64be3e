/** Metrics as text: the examples of both specifications, and what real programs expose. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ProtocolError } from '../../../protocol/errors.ts'
import { TextParser } from '../../../protocol/prometheus/text.ts'
import { familyMetadata, readSeries, type TextFormat } from '../../../protocol/prometheus/text-line.ts'
import { Random } from '../../support/random.ts'
import { SampleList, TextReader, type TextSample } from '../../support/text-samples.ts'
import { NO_VALUES, VALUES, WRONG } from './text-lines.ts'

const LIMITS = { lineBytes: 1_024, families: 1_000 }

const vector = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../../vectors/prometheus/${name}.txt`, import.meta.url)))

const parse = (given: string | Uint8Array, format: TextFormat = 'prometheus', piece = Number.POSITIVE_INFINITY) =>
  new TextReader(format, LIMITS).read(given, piece)

const only = (line: string, format?: TextFormat): TextSample => parse(line, format).samples[0] as TextSample
const problem = (given: string, format?: TextFormat): string => {
  try {
    for (const { series } of parse(given, format).samples) readSeries(series)
  } catch (error) {
    expect(error).toBeInstanceOf(ProtocolError)
    return (error as Error).message
  }
  return ''
}

describe('the text format 0.0.4', () => {
  test('the example of its specification', () => {
    const { samples, families } = parse(vector('exposition-0.0.4'))
    expect(samples).toHaveLength(20)
    expect(samples.slice(0, 5).map(({ series, value, time }) => ({ ...readSeries(series), value, time }))).toEqual([
      {
        name: 'http_requests_total',
        labels: [
          ['method', 'post'],
          ['code', '200'],
        ],
        value: 1027,
        time: 1_395_066_363_000_000,
      },
      {
        name: 'http_requests_total',
        labels: [
          ['method', 'post'],
          ['code', '400'],
        ],
        value: 3,
        time: 1_395_066_363_000_000,
      },
      {
        name: 'msdos_file_access_time_seconds',
        labels: [
          ['path', 'C:\\DIR\\FILE.TXT'],
          ['error', 'Cannot find file:\n"FILE.TXT"'],
        ],
        value: 1_458_255_915,
        time: undefined,
      },
      { name: 'metric_without_timestamp_and_labels', labels: [], value: 12.47, time: undefined },
      {
        name: 'something_weird',
        labels: [['problem', 'division by zero']],
        value: Number.POSITIVE_INFINITY,
        time: -3_982_045_000,
      },
    ])
    expect(familyMetadata('http_request_duration_seconds_bucket', families)).toEqual({
      type: 'histogram',
      help: 'A histogram of the request duration.',
      unit: '',
    })
    expect(familyMetadata('something_weird', families)).toBeUndefined()
  })

  test('what node_exporter and Prometheus expose', () => {
    const exported = parse(vector('node-exporter'))
    expect(exported.samples.length).toBeGreaterThan(150)
    expect(familyMetadata('node_load1', exported.families)).toMatchObject({ type: 'gauge', help: '1m load average.' })
    const { samples, families } = parse(vector('prometheus'))
    expect(samples.length).toBeGreaterThan(250)
    for (const { series } of [...samples, ...exported.samples]) expect(readSeries(series).name).toMatch(/^[a-z]/)
    expect(familyMetadata('process_cpu_seconds_total', families)?.type).toBe('counter')
  })

  test.each(VALUES)('the value %s', (text, value) => expect(only(`m ${text}\n`).value).toBe(value))

  test.each(NO_VALUES)('the value %s is none', (text) =>
    expect(problem(`m ${text}\n`)).toBe(`line 1: ${JSON.stringify(text)} is no value`),
  )

  test('blanks, and a last line without its end', () => {
    const { samples } = parse('\n  a \t{ b = "c" , d="e",\t} \t 1 \t 2 \r\n\n#\n# a comment\nx{} 3')
    expect(samples.map(({ series, value, time }) => [readSeries(series), value, time])).toEqual([
      [
        {
          name: 'a',
          labels: [
            ['b', 'c'],
            ['d', 'e'],
          ],
        },
        1,
        2_000,
      ],
      [{ name: 'x', labels: [] }, 3, undefined],
    ])
  })

  test('a line may end as on Windows, which is no part of what it says, and nowhere else', () => {
    const { samples, families } = parse('# HELP a Help.\r\n# TYPE a gauge\r\n\r\na 1\r\na 2 3\r\n')
    expect(samples.map(({ value, time }) => [value, time])).toEqual([
      [1, undefined],
      [2, 3_000],
    ])
    expect(families.get('a')).toEqual({ type: 'gauge', help: 'Help.', unit: '' })
    // As two lines of a file whose lines end so these would be one sample with a time.
    expect(() => parse('a 1\r2\n')).toThrow('line 1: "1\\r2" is no value')
  })

  test('texts of labels may hold anything', () => {
    const { series } = only('m{a="}, b=\\"\\\\",c="# 1 ü\\x"} 1\n')
    expect(readSeries(series).labels).toEqual([
      ['a', '}, b="\\'],
      ['c', '# 1 ü\\x'],
    ])
  })

  test('names in quotes, as Prometheus 3 has them', () => {
    expect(readSeries(only('{"http.requests", "a.b"="c"} 1\n').series)).toEqual({
      name: 'http.requests',
      labels: [['a.b', 'c']],
    })
    expect(familyMetadata('a b', parse('# TYPE "a b" counter\n').families)?.type).toBe('counter')
  })

  test.each(WRONG)('%s is an error', (line, what) => expect(problem(`${line}\n`)).toContain(what))

  test('text that is not UTF-8', () => {
    const bytes = Uint8Array.from(Buffer.from('ok 1\n\xff 1\n', 'latin1'))
    expect(() => parse(bytes)).toThrow(/^line 2: the text is not UTF-8/)
  })

  test('the offset of an error is that of its line, in bytes', () => {
    try {
      parse('a{b="ü"} 1\nbad x\n')
      expect.unreachable()
    } catch (error) {
      expect((error as ProtocolError).offset).toBe(12)
    }
  })
})

describe('OpenMetrics 1.0', () => {
  test('the examples of its specification', () => {
    const { samples, families } = parse(vector('openmetrics-1.0'), 'openmetrics')
    expect(samples).toHaveLength(16)
    expect(familyMetadata('acme_http_router_request_seconds_sum', families)).toEqual({
      type: 'summary',
      help: "Latency though all of ACME's HTTP request router.",
      unit: 'seconds',
    })
    expect(familyMetadata('process_cpu_seconds_total', families)?.type).toBe('counter')
    expect(samples.find(({ series }) => series === 'foo_bucket{le="10"}')).toMatchObject({ value: 17, time: undefined })
    expect(samples.at(-1)).toEqual({ series: 'foo_created', value: 1_520_430_000.123, time: undefined })
  })

  test('timestamps are seconds, with an exemplar after them or without', () => {
    const text = 'a 1 1520879607.789\na_bucket{le="+Inf"} 1 1520879608 # {trace_id="x"} 0.5 1520879607\n# EOF\n'
    expect(parse(text, 'openmetrics').samples.map(({ time }) => time)).toEqual([
      1_520_879_607_789_000, 1_520_879_608_000_000,
    ])
  })

  test.each([
    ['a_total 1 #', 'an exemplar without labels'],
    ['a_total 1 # x', 'an exemplar without labels'],
    ['a_total 1 # {x\\="y"} 1', 'is no name of a label'],
    ['a_total 1 # {1="y"} 1', '"1" is no name of a label'],
    ['a_total 1 # {x="y",x="z"} 1', 'label "x" stands twice'],
    ['a_total 1 # {x=y} 1', 'label "x" has no text in quotes'],
    ['a_total 1 # {x="y"}', 'a value is missing'],
    ['a_total 1 # {x="y"} 1 2 3', '"3" after the exemplar'],
    ['a_total 1 2 # {x="y" 1', 'the labels have no end'],
    ['# TYPE a nonsense', '"nonsense" is no type of a metric'],
    ['# UNIT a seconds', '"a" does not end with its unit "seconds"'],
  ])('%s is an error', (line, what) => expect(problem(`${line}\n# EOF\n`, 'openmetrics')).toContain(what))

  test('escapes of help texts', () => {
    const { families } = parse('# HELP a say \\"hi\\"\\n\\\\\n# EOF\n', 'openmetrics')
    expect(families.get('a')?.help).toBe('say "hi"\n\\')
  })

  test('a text without its end is cut, and nothing follows the end', () => {
    expect(problem('a 1\n', 'openmetrics')).toContain('ends without # EOF')
    expect(problem('a 1\n# EOF\nb 1\n', 'openmetrics')).toContain('a line after # EOF')
    expect(problem('a 1\n# EOF', 'openmetrics')).toBe('')
    for (const comment of ['#EOF', '# EOFx', '# EOF x']) {
      expect(problem(`a 1\n${comment}\n`, 'openmetrics')).toContain('ends without # EOF')
    }
  })
})

describe('in pieces', () => {
  test.each([
    ['exposition-0.0.4', 'prometheus'],
    ['node-exporter', 'prometheus'],
    ['openmetrics-1.0', 'openmetrics'],
  ] as const)('%s is the same byte by byte', (name, format) => {
    const whole = parse(vector(name), format)
    for (const piece of [1, 7, 100]) expect(parse(vector(name), format, piece)).toEqual(whole)
  })

  test('cut anywhere, OpenMetrics is an error or lacks only its last byte', () => {
    const bytes = vector('openmetrics-1.0')
    for (let length = 0; length < bytes.length - 1; length++) {
      expect(() => parse(bytes.subarray(0, length), 'openmetrics')).toThrow(ProtocolError)
    }
  })

  test('random bytes, and examples with random changes, are read or refused', () => {
    const random = new Random(11)
    for (let round = 0; round < 500; round++) {
      const bytes = vector(random.pick(['exposition-0.0.4', 'openmetrics-1.0'])).slice(0, 1_200)
      for (let change = random.below(20); change > 0; change--) bytes[random.below(bytes.length)] = random.below(256)
      if (round % 5 === 0) for (let at = 0; at < bytes.length; at++) bytes[at] = random.below(256)
      try {
        for (const { series } of parse(bytes, random.pick(['prometheus', 'openmetrics'] as const)).samples)
          readSeries(series)
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError)
      }
    }
  })
})

describe('bounds', () => {
  test.each([1, 7, 1_000, 100_000])('of a long comment the beginning is read, in pieces of %i bytes', (piece) => {
    const help = 'é'.repeat(35_000)
    const text = Buffer.from(`# HELP a ${help}\n  # ${help}\na 1\n# ${help}`)
    const { samples, families } = parse(Uint8Array.from(text), 'prometheus', piece)
    expect(samples).toMatchObject([{ series: 'a', value: 1 }])
    expect(families.get('a')?.help).toMatch(/^é{500,}$/)
  })

  test('what 0.0.4 has for plain comments may say anything', () => {
    const comments = '#TYPE a nonsense\n#HELP a-b\n# UNIT 5 a\n# TYPED a-b\n'
    const { samples, families } = parse(`${comments}a 1\n`)
    expect(samples).toHaveLength(1)
    expect(families.size).toBe(0)
  })

  test('the offset after a long comment is right', () => {
    const comment = Buffer.from(`# ${'x'.repeat(5_000)}\n`)
    const list = new SampleList()
    const parser = new TextParser('prometheus', LIMITS, list)
    for (const piece of [comment.subarray(0, 3_000), comment.subarray(3_000)]) for (const _ of parser.push(piece));
    expect(list.samples).toEqual([])
    try {
      for (const _ of parser.push(Buffer.from('bad x\n')));
      expect.unreachable()
    } catch (error) {
      expect(error).toMatchObject({
        offset: comment.length,
        message: expect.stringContaining('line 2: "x" is no value'),
      })
    }
  })

  test('a long line is refused before it is complete', () => {
    const parser = new TextParser('prometheus', LIMITS, new SampleList())
    const piece = new TextEncoder().encode('x'.repeat(300))
    expect(() => {
      for (let count = 0; count < 4; count++) for (const _ of parser.push(piece));
    }).toThrow(/at most 1024 bytes/)
    expect(problem(`${'x'.repeat(2_000)} 1\n`)).toContain('at most 1024 bytes')
  })

  test('further families have no metadata', () => {
    const lines = Array.from({ length: 1_100 }, (_, index) => `# TYPE m${index} gauge\n`).join('')
    expect(parse(lines).families.size).toBe(1_000)
  })
})

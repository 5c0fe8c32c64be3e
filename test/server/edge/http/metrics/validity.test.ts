/**
 * The text of GET /metrics is valid whatever the series are called and labelled: no sample stands in it twice, and the readers of
 * Prometheus refuse nothing.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { BasicType } from '../../../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../../../protocol/monitor/value.ts'
import { contentTypes, Exposition } from '../../../../../protocol/prometheus/exposition.ts'
import type { ExpositionFormat } from '../../../../../protocol/prometheus/samples.ts'
import { SampleWriter } from '../../../../../server/edge/http/metrics/samples.ts'
import { fromForeign, labelsFrom } from '../../../../../server/kernel/metrics/labels.ts'
import type { Reading } from '../../../../../server/kernel/metrics/readings.ts'
import { eventually } from '../../../../support/eventually.ts'
import { freePort } from '../../../../support/free-port.ts'
import { times } from '../../../../support/long.ts'
import { Random } from '../../../../support/random.ts'

const { ARRAY, BOOLEAN, DOUBLE, INT64, REC, STRING, UINT64 } = BasicType
const EPOCH = 1_700_000_000_000_000
const FORMATS = ['prometheus', 'openmetrics'] as const
const hasPrometheus = spawnSync('promtool', ['--version']).status === 0

const SOURCES = [
  'prometheus.',
  'prometheus.',
  'prometheus.',
  'otlp.',
  'statsd.',
  'gmetric.',
  'prometheus.otlp_',
  'cinnabar_',
]
const WORDS = ['a', 'a_b', 'a.b', 'h', 'x', 'größe', 'last.heard', '5xx', 'a:b']
const ENDS = [
  '',
  '',
  '_total',
  '.total',
  '_bucket',
  '_count',
  '_sum',
  '.count',
  '.sum',
  '_info',
  '_created',
  '_total_total',
]
const LABELS = [
  'le',
  'quantile',
  'exported_le',
  'cinnabar_name',
  'cinnabar_name_',
  'a.b',
  'a_b',
  '__name__',
  'name',
  'host',
  'index',
  'größe',
  '1',
  'value',
]
const TEXTS = [
  '',
  '1',
  '+Inf',
  '0.5',
  'NaN',
  'x',
  'prometheus.a',
  'a"b',
  '\\',
  '\n',
  '\r\na_b 7',
  '\0',
  '\u2028a',
  '{}',
  '1,cinnabar_name=',
  '\u{1f600}',
  '# EOF',
]
const NUMBERS = [0, 1, -1, 3, 1e300, -0, 5e-324, Number.NaN, Infinity, -Infinity]

function double(random: Random): Value {
  return { type: DOUBLE, value: random.pick(NUMBERS) }
}

function listOf<T>(random: Random, one: () => T): T[] {
  return Array.from({ length: random.below(4) }, one)
}

function distribution(random: Random): Field[] {
  const count = () => BigInt(random.below(5))
  const numbers = (name: string): Field => {
    const items = listOf(random, () => random.pick([...NUMBERS, 0.5, 2, 10]))
    if (random.below(2) === 0) items.sort((one, other) => one - other)
    return { name, type: ARRAY, value: { element: DOUBLE, items } }
  }
  const counts: Field = { name: 'counts', type: ARRAY, value: { element: UINT64, items: listOf(random, count) } }
  const totals: Field[] = [
    { name: 'count', type: UINT64, value: count() },
    { name: 'sum', type: DOUBLE, value: random.pick(NUMBERS) },
  ]
  if (random.below(2) === 0) return [...totals, numbers('bounds'), counts]
  return [...totals, numbers('quantiles'), numbers('values')]
}

function anyValue(random: Random, depth = 0): Value {
  switch (random.below(depth > 2 ? 5 : 9)) {
    case 0:
      return { type: BOOLEAN, value: true }
    case 1:
      return { type: INT64, value: -(2n ** 63n) }
    case 2:
      return { type: STRING, value: random.pick(TEXTS) }
    case 3:
    case 4:
      return double(random)
    case 5:
      return { type: ARRAY, value: { element: REC, items: listOf(random, () => fields(random, depth)) } }
    case 6:
      return { type: REC, value: fields(random, depth) }
    default:
      return { type: REC, value: distribution(random) }
  }
}

function fields(random: Random, depth: number): Field[] {
  const names = new Set(listOf(random, () => random.pick(['count', 'sum', 'info', 'a.b', 'a_b', 'bucket', 'total'])))
  return [...names].map((name) => ({ name, ...anyValue(random, depth + 1) }))
}

/** Series of many metrics, each once, as hostile as sources may make them. */
function* seriesOf(random: Random): Generator<Reading> {
  const seen = new Set<string>()
  for (let metrics = 0; metrics < 25; metrics++) {
    const source = random.pick(SOURCES)
    const name = source + random.pick(WORDS) + random.pick(ENDS)
    if (seen.has(name)) continue
    seen.add(name)
    const isScraped = source.startsWith('prometheus.')
    const distribution = isScraped ? random.pick(['histogram', 'summary', undefined] as const) : undefined
    const metric = {
      name,
      kind: 'continuous',
      type: undefined,
      unit: random.pick(['', 's', 'B', 'total', '%']),
      description: random.pick(TEXTS),
      parameters: [],
      isCounter: random.pick([true, false, undefined]),
      distribution,
    } as const
    const keys = new Set<string>()
    for (let series = random.below(6); series >= 0; series--) {
      const labels = new Map(listOf(random, () => [fromForeign(random.pick(LABELS)), random.pick(TEXTS)] as const))
      const key = JSON.stringify([...labels].filter(([, text]) => text !== '').sort())
      if (keys.has(key)) continue
      keys.add(key)
      const value = isScraped ? double(random) : anyValue(random)
      yield { metric, labels: labelsFrom([['name', name], ...labels]), measured: { value, time: EPOCH } }
    }
  }
}

function textOf(seed: number, format: ExpositionFormat, isPrefixed = false): string {
  const exposition = new Exposition(format)
  const writer = new SampleWriter({ exposition, hasTimes: false, isPrefixed, now: EPOCH })
  for (const reading of seriesOf(new Random(seed))) writer.add(reading)
  return [...exposition.text()].join('')
}

/** Each sample by its name and its labels in order, as Prometheus reads them. Throws where it reads none. */
function samplesIn(text: string): string[] {
  const samples: string[] = []
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, name, labels = ''] = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$/s.exec(line) ?? []
    const given = [...labels.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)/gy)]
    const isRead = name !== undefined && given.map(([all]) => all).join('') === labels
    const isUnique = new Set(given.map(([, label]) => label)).size === given.length
    if (!isRead || !isUnique) throw new Error(`no sample: ${line}`)
    const texts = given.map(([, label, text]) => `${label}="${text}"`)
    samples.push(`${name}{${texts.sort().join()}}`)
  }
  return samples
}

function twice(names: readonly string[]): string[] {
  const seen = new Set<string>()
  return names.filter((name) => seen.size === seen.add(name).size)
}

test.each(FORMATS)('no family and no sample is there twice: %s', (format) => {
  for (let seed = 0; seed < 200; seed++) {
    const text = textOf(seed, format, seed % 4 === 0)
    const families = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name)
    expect([...twice(samplesIn(text)), ...twice(families)], `seed ${seed}`).toEqual([])
  }
})

// promtool and prometheus come with Debian's package prometheus.
test.skipIf(!hasPrometheus)('promtool refuses nothing (apt install prometheus)', () => {
  for (let seed = 0; seed < times({ short: 5, long: 25 }); seed++) {
    const input = textOf(seed, 'prometheus')
    const { stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
    expect(stderr.includes('parsing') ? `seed ${seed}: ${stderr}` : '').toBe('')
  }
})

// The same package.
test.skipIf(!hasPrometheus)('Prometheus scrapes all of it, in both formats (apt install prometheus)', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-validity-'))
  const texts = new Map<string, { readonly format: ExpositionFormat; readonly text: string }>(
    Array.from({ length: times({ short: 5, long: 20 }) }, (_, seed) =>
      FORMATS.map((format) => [`/${format}/${seed}`, { format, text: textOf(seed, format) }] as const),
    ).flat(),
  )
  const targets = createServer((request, response) => {
    const { format, text } = texts.get(request.url ?? '') ?? { format: 'prometheus', text: '' }
    response.writeHead(200, { 'content-type': contentTypes[format] }).end(text)
  })
  await new Promise<void>((resolve) => targets.listen(0, '127.0.0.1', resolve))
  const { port } = targets.address() as AddressInfo
  const jobs = [...texts.keys()].map((path) => ({
    job_name: path,
    metrics_path: path,
    static_configs: [{ targets: [`127.0.0.1:${port}`] }],
  }))
  writeFileSync(
    join(directory, 'prometheus.yml'),
    JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: jobs }),
  )
  const own = await freePort()
  const prometheus = spawn(
    'prometheus',
    ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=127.0.0.1:${own}`],
    { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const logged: Buffer[] = []
  prometheus.stderr.on('data', (part: Buffer) => logged.push(part))
  try {
    await eventually(async () => {
      const answer = await fetch(`http://127.0.0.1:${own}/api/v1/targets`)
      const { data } = (await answer.json()) as {
        data: { activeTargets: { scrapePool: string; health: string; lastError: string }[] }
      }
      expect(data.activeTargets.map(({ health }) => health)).not.toContain('unknown')
      expect(data.activeTargets).toHaveLength(texts.size)
      expect(data.activeTargets.filter(({ lastError }) => lastError !== '')).toEqual([])
    })
    // It warns of samples that it has already, and takes the others.
    expect(Buffer.concat(logged).toString()).not.toMatch(/Error on ingesting|duplicate/)
  } finally {
    const ended = new Promise((resolve) => prometheus.once('close', resolve))
    prometheus.kill()
    await ended
    targets.close()
    targets.closeAllConnections()
    rmSync(directory, { recursive: true, force: true })
  }
})

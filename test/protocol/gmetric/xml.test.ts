/** Whatever bytes a network sends, what comes out is XML that gmetad can read, and tell on. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { XmlHost, XmlMetric } from '../../../protocol/gmetric/xml.ts'
import {
  DOCUMENT_END,
  documentStart,
  HOST_END,
  hostStart,
  metricElement,
  safeName,
} from '../../../protocol/gmetric/xml.ts'
import { hostsOf } from '../../support/ganglia-xml.ts'

const times = { tn: 1, tmax: 60, dmax: 0 }
const metric: XmlMetric = { name: 'm', value: '1', type: 'uint8', units: '', ...times, slope: 3, extra: [] }
const host: XmlHost = { name: 'h', address: '10.0.0.9', reported: 5, ...times, location: '', started: 0 }

const whole = (about: Partial<XmlHost>, ...metrics: Partial<XmlMetric>[]) =>
  [
    documentStart('c', 7),
    hostStart({ ...host, ...about }),
    ...metrics.map((one) => metricElement({ ...metric, ...one })),
    HOST_END,
    DOCUMENT_END,
  ].join('')

const read = (about: Partial<XmlMetric>) => hostsOf(whole({}, about))[0]?.children[0]

test('text of any script comes out as it went in', () => {
  expect(read({ name: 'größe', value: '漢 \u{1f600}\t\n\r' })?.attributes).toMatchObject({
    NAME: 'größe',
    VAL: '漢 \u{1f600}\t\n\r',
    TYPE: 'uint8',
    SLOPE: 'both',
  })
})

test('what XML has no form for is replaced, and what gmetad would not escape again', () => {
  expect(read({ name: 'a&<"b', value: '\0\x1b\ufffe', units: '<&>' })?.attributes).toMatchObject({
    NAME: 'a___b',
    VAL: '___',
    UNITS: '__>',
  })
})

test('a name is the name of a file', () => {
  expect(['/etc/passwd', '..', '.', '../x', 'x'.repeat(300), 'ok'].map(safeName)).toEqual([
    '_etc_passwd',
    '__',
    '_',
    '.._x',
    'x'.repeat(200),
    'ok',
  ])
  // Where gmetad keeps the sums of a cluster; hosts' names it may write in small letters.
  expect(['__SummaryInfo__', '__summaryinfo__'].map(safeName)).toEqual(['___SummaryInfo__', '___summaryinfo__'])
  expect(new TextEncoder().encode(safeName('ö'.repeat(300)))).toHaveLength(200)
})

test('slopes have names, also the one that is newer and those there are none for', () => {
  const slopes = [0, 1, 2, 3, 4, 5, 6, 4_000_000_000].map((slope) => read({ slope })?.attributes['SLOPE'])
  const names = 'zero positive negative both unspecified derivative unspecified unspecified'
  expect(slopes.join(' ')).toBe(names)
})

test('extra elements stand in reverse, as in gmond, and only so many as gmetad has room for', () => {
  const extra = [
    { key: 'GROUP', data: 'a' },
    { key: 'DESC', data: 'b' },
  ]
  const shown = (about: Partial<XmlMetric>) => read(about)?.children[0]?.children.map(({ attributes }) => attributes)
  expect(shown({ extra })).toEqual([
    { NAME: 'DESC', VAL: 'b' },
    { NAME: 'GROUP', VAL: 'a' },
  ])
  expect(shown({ extra: [...extra, { key: 'TITLE', data: 'x'.repeat(1500) }] })).toHaveLength(2)
  expect(shown({ extra: Array.from({ length: 64 }, () => ({ key: 'GROUP', data: '' })) })).toHaveLength(32)
})

test('control characters take no more room than they had, and a name is part of what there is room for', () => {
  const full = { value: '\x01'.repeat(1024), name: 'n'.repeat(200), units: 'u'.repeat(128) }
  const shown = read({ ...full, extra: [{ key: 'k', data: 'd'.repeat(200) }] })
  expect(shown?.attributes).toMatchObject({ VAL: '_'.repeat(1024), NAME: full.name, UNITS: full.units })
  expect(shown?.children[0]?.children).toEqual([])
})

test('where there is less room than gmetad has, texts are cut and extra elements left out', () => {
  const long = { ...metric, value: 'v'.repeat(500), units: 'u', extra: [{ key: 'k', data: 'd' }] }
  const [only] = hostsOf(
    [documentStart('c', 7), hostStart(host), metricElement(long, 100), HOST_END, DOCUMENT_END].join(''),
  )
  expect(only?.children[0]?.attributes).toMatchObject({ NAME: 'm', VAL: 'v'.repeat(99), UNITS: '' })
  expect(only?.children[0]?.children[0]?.children).toEqual([])
})

test('of any names, values and extra data it is one whole document of ASCII', () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 })
  const extra = fc.array(fc.record({ key: text, data: text }), { maxLength: 5 })
  const metrics = fc.array(fc.record({ name: text, value: text, units: text, extra, slope: fc.nat() }), {
    maxLength: 4,
  })
  fc.assert(
    fc.property(fc.record({ name: text, address: text, location: text }), metrics, (about, all) => {
      const document = whole(about, ...all)
      expect(document).toMatch(/^[\n -~]*$/)
      expect(hostsOf(document)[0]?.children).toHaveLength(all.length)
      expect(document).not.toMatch(/&#(?:34|38|60);/)
    }),
  )
})

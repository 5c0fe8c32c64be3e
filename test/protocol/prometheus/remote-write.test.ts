/** Remote write: what Prometheus and vmagent send, and 2.0 byte by byte as its definition has it. */
import { readFileSync } from 'node:fs'
import { snappyCompress as compress } from 'hysnappy'
import { describe, expect, test } from 'vitest'
import { ByteMemory } from '../../../protocol/bytes/byte-memory.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import {
  decodeWriteRequest,
  decodeWriteRequest2,
  decompress,
  type LabelMemory,
  type WriteRequest,
} from '../../../protocol/prometheus/remote-write.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { times } from '../../support/long.ts'
import { Random } from '../../support/random.ts'

const LIMITS = { bytes: 1 << 20, elements: 100_000 }

const captured = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../../vectors/prometheus/${name}.snappy`, import.meta.url)))
const decode = (bytes: Uint8Array, limits = LIMITS): WriteRequest => finish(decodeWriteRequest(bytes, limits))
const decode2 = (bytes: Uint8Array): WriteRequest => finish(decodeWriteRequest2(bytes, LIMITS))
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'))

describe('version 1.0', () => {
  test('samples of Prometheus', () => {
    const { series, families } = decode(decompress(captured('write-samples'), LIMITS))
    expect([series.length, families.size]).toEqual([52, 0])
    expect(series[0]).toEqual({
      name: 'go_gc_duration_seconds',
      labels: [
        ['instance', '127.0.0.1:19803'],
        ['job', 'self'],
        ['quantile', '0'],
      ],
      samples: [{ value: 0.000066706, time: 1_795_451_550_369_000 }],
      histograms: 0,
      metadata: undefined,
    })
  })

  test('metadata of Prometheus', () => {
    const { series, families } = decode(decompress(captured('write-metadata'), LIMITS))
    expect([series.length, families.size]).toEqual([0, 194])
    expect(families.get('go_goroutines')).toEqual({
      type: 2,
      help: 'Number of goroutines that currently exist.',
      unit: '',
    })
  })

  test('a stale marker of vmagent is no value; another NaN is one', () => {
    const [series] = decode(decompress(captured('vmagent-stale'), LIMITS)).series
    expect(series).toMatchObject({
      name: 'prometheus_build_info',
      samples: [{ value: undefined, time: 1_795_451_554_569_000 }],
    })
    // A series without labels, with a sample of 0x7ff8000000000001.
    const [odd] = decode(bytes('0a 0d  12 0b  09 010000000000f87f  10 05')).series
    expect(odd?.samples).toEqual([{ value: Number.NaN, time: 5_000 }])
  })

  test('native histograms are counted, and nothing more', () => {
    expect(decode(bytes('0a 04  22 02 08 01')).series).toMatchObject([{ histograms: 1, samples: [] }])
  })

  test('a byte order mark is a character of a text', () => {
    // Labels "a" and U+FEFF "a".
    const { series } = decode(bytes('0a 12  0a 06 0a 01 61 12 01 62  0a 08 0a 04 efbbbf61 12 00'))
    expect(series[0]?.labels).toEqual([
      ['a', 'b'],
      ['\ufeffa', ''],
    ])
  })

  test('negative times, and fields left out', () => {
    // timestamp -1 as ten bytes
    const { series } = decode(bytes('0a 0f  12 0b  10 ffffffffffffffffff01  0a 00'))
    expect(series).toMatchObject([{ name: '', labels: [['', '']], samples: [{ value: 0, time: -1_000 }] }])
  })
})

describe('with a memory of labels', () => {
  const decodeWith = (memory: LabelMemory | undefined, given: Uint8Array, elements = LIMITS.elements): unknown => {
    try {
      const { series, families } = finish(decodeWriteRequest(given, { elements }, memory))
      return { series: series.map(({ shared: _, ...all }) => all), families: [...families] }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      return error.code
    }
  }

  test('labels that it has no room for are shared by nothing', () => {
    const given = decompress(captured('write-samples'), LIMITS)
    const { series } = finish(decodeWriteRequest(given, LIMITS, new ByteMemory(1)))
    expect(series.length).toBeGreaterThan(0)
    expect(series.filter(({ shared }) => shared !== undefined)).toEqual([])
  })

  test('the same labels are the same object in a later request', () => {
    const memory: LabelMemory = new ByteMemory(1 << 20)
    const given = decompress(captured('write-samples'), LIMITS)
    const [first, again] = [0, 0].map(() => finish(decodeWriteRequest(given, LIMITS, memory)).series)
    expect(first?.map(({ shared }) => shared)).toEqual(again?.map(({ shared }) => shared))
    for (const [at, { shared, name, labels }] of (again ?? []).entries()) {
      expect(shared).toBe(first?.[at]?.shared)
      expect(shared).toMatchObject({ name, labels })
    }
    expect(decodeWith(memory, given)).toEqual(decodeWith(undefined, given))
  })

  // Labels a=b (8 bytes) and c=d, and a sample of 1 at 7 ms.
  const [AB, CD, NAME, SAMPLE] = [
    '0a06 0a0161 120162',
    '0a06 0a0163 120164',
    '0a0d 0a08 5f5f6e616d655f5f 120175',
    '120b 09 000000000000f03f 1007',
  ]
  test.each([
    ['labels after a sample', `0a1d ${AB} ${SAMPLE} ${CD}`],
    ['the name after a sample', `0a24 ${AB} ${SAMPLE} ${NAME}`],
    ['a second name after a sample', `0a2b ${NAME} ${SAMPLE} ${NAME.replace('75', '76')}`],
    ['labels alone', `0a10 ${AB} ${CD}`],
    ['nothing', '0a00'],
    ['an empty name, and another after a sample', `0a2a 0a0c 0a08 5f5f6e616d655f5f 1200 ${SAMPLE} ${NAME}`],
    ['samples in any form', `0a2d ${AB} ${SAMPLE} 1200 1202 1000 1210 10 95b7d2c9f031 09 02000000 0000f07f`],
    ['a time of ten bytes', `0a15 ${AB} 120b 10 ffffffffffffffffff01`],
    ['a time that is cut off', `0a0c ${AB} 1202 1080`],
    ['a number that is cut off', `0a0f ${AB} 1205 09 01020304`],
    ['a sample with another field', `0a0e ${AB} 1204 1007 1801`],
    ['a sample whose length has two bytes', `0a0d ${AB} 128200 1007`],
    ['a sample that is longer than its series', `0a0c ${AB} 1207 1007`],
    ['a series that ends after a tag', `0a09 ${AB} 12`],
    ['a label that is longer than its series', '0a08 0a07 0a0161 120162'],
    ['a label that is cut off', `0a10 ${AB} 0a07 0a0163 120164`],
  ])('%s are read as without one', (_, hex) => {
    const memory: LabelMemory = new ByteMemory(1 << 20)
    for (const known of [`0a15 ${AB} ${SAMPLE}`, `0a1c ${NAME} ${SAMPLE}`, hex, hex]) {
      expect(decodeWith(memory, bytes(known))).toEqual(decodeWith(undefined, bytes(known)))
    }
  })

  test('known labels count as they did, for the request and for its message', () => {
    // A series of 40 labels without anything, and one whose label has 40 names.
    const empty = `0a50 ${'0a00'.repeat(40)}`
    const many = `0a7a 0a78 ${'0a0161'.repeat(40)}`
    for (const [hex, elements] of [
      [empty, 41],
      [many, 42],
    ] as const) {
      const memory: LabelMemory = new ByteMemory(1 << 20)
      for (const allowed of [elements - 1, elements, elements, elements - 1]) {
        expect(decodeWith(memory, bytes(hex), allowed), `${allowed}`).toEqual(
          decodeWith(undefined, bytes(hex), allowed),
        )
      }
      expect(decodeWith(memory, bytes(hex), elements)).not.toBe('BAD_COUNT')
      expect(decodeWith(memory, bytes(hex), elements - 1)).toBe('BAD_COUNT')
    }
  })

  test('whatever bytes come, they say the same as without one', () => {
    const random = new Random(11)
    const memory: LabelMemory = new ByteMemory(1 << 16)
    const given = decompress(captured('write-samples'), LIMITS)
    for (let round = 0; round < times({ short: 300, long: 4_000 }); round++) {
      const changed = given.slice()
      for (let count = random.below(4); count > 0; count--) changed[random.below(changed.length)] = random.below(256)
      const cut = random.below(3) === 0 ? changed.subarray(0, random.below(changed.length)) : changed
      expect(decodeWith(memory, cut)).toEqual(decodeWith(undefined, cut))
    }
  })
})

describe('version 2.0', () => {
  // symbols "", "__name__", "up", "job", "api", "Whether it answers."
  const symbols = `22 00  22 08 5f5f6e616d655f5f  22 02 7570  22 03 6a6f62  22 03 617069
    22 13 5768657468657220697420616e73776572732e`
  // labels_refs 1 2 3 4; a sample of 1.0 at 7 ms; metadata of a gauge with help 5
  const series = '2a 19  0a 04 01020304  12 0b 09 000000000000f03f 10 07  2a 04 08 02 18 05'

  test('symbols, samples and metadata', () => {
    expect(decode2(bytes(symbols + series)).series).toEqual([
      {
        name: 'up',
        labels: [['job', 'api']],
        samples: [{ value: 1, time: 7_000 }],
        histograms: 0,
        metadata: { type: 2, help: 'Whether it answers.', unit: '' },
      },
    ])
    // Symbols may follow what refers to them.
    expect(decode2(bytes(series + symbols)).series).toHaveLength(1)
  })

  test('references that are not packed', () => {
    expect(decode2(bytes(`${symbols} 2a 04  08 01  08 02`)).series).toMatchObject([{ name: 'up' }])
  })

  test.each([
    ['a symbol that there is not', `${symbols} 2a 04 0a 02 01 06`, 'there is no symbol 6'],
    ['a label without its text', `${symbols} 2a 03 0a 01 01`, 'a label without its text'],
  ])('%s is a problem of its series alone', (_, given, problem) => {
    const good = '2a 04 0a 02 01 02'
    expect(decode2(bytes(`${given} ${good}`)).series).toMatchObject([{ problem }, { name: 'up', labels: [] }])
  })

  test('symbols that do not begin with the empty one are refused', () => {
    expect(() => decode2(bytes('22 01 61'))).toThrow(new ProtocolError('BAD_PROTOBUF', 'the first symbol is not empty'))
  })
})

describe('bounds', () => {
  test('the length is known, and refused, before anything is decompressed', () => {
    // It claims four gigabytes less one.
    expect(() => decompress(bytes('ffffffff0f 00'), LIMITS)).toThrow('4294967295 bytes when decompressed')
    expect(() => decompress(compress(new Uint8Array(LIMITS.bytes + 1)), LIMITS)).toThrow(ProtocolError)
    expect(decompress(compress(new Uint8Array(LIMITS.bytes)), LIMITS)).toHaveLength(LIMITS.bytes)
    for (const odd of ['', 'ff', 'ffffffffff01', '0501'])
      expect(() => decompress(bytes(odd), LIMITS)).toThrow(ProtocolError)
  })

  test('few bytes do not become very many elements', () => {
    // Series of two bytes each.
    const tiny = new Uint8Array(2_000).map((_, index) => (index % 2 === 0 ? 0x0a : 0))
    expect(decode(tiny, { bytes: 4_000, elements: 1_000 }).series).toHaveLength(1_000)
    expect(() => decode(tiny, { bytes: 4_000, elements: 999 })).toThrow('too many elements')
  })
})

test('a message that is read at once has bounds of its own, and others are read in steps', () => {
  const limits = { bytes: 1 << 20, elements: 1_000_000 }
  // Series of empty samples, two bytes each.
  const samples = (count: number): Uint8Array => new Uint8Array(2 * count).map((_, at) => (at % 2 === 0 ? 0x12 : 0))
  const series = (count: number): Buffer => {
    const length = Buffer.from([0x80 | ((2 * count) & 0x7f), 0x80 | (((2 * count) >> 7) & 0x7f), (2 * count) >> 14])
    return Buffer.concat([Buffer.from([0x0a]), length, samples(count)])
  }
  expect(decode(series(32_768), limits).series[0]?.samples).toHaveLength(32_768)
  expect(() => decode(series(32_769), limits)).toThrow('too many elements in one message')
  const steps = decodeWriteRequest(Buffer.concat(Array.from({ length: 20 }, () => series(1_000))), limits)
  let pauses = 0
  while (steps.next().done !== true) pauses++
  expect(pauses).toBe(20)
})

describe('whatever comes', () => {
  const given = decompress(captured('write-samples'), LIMITS)
  const attempt = (of: Uint8Array): void => {
    for (const each of [decode, decode2]) {
      try {
        each(of)
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
      }
    }
  }

  test('a request that is cut off anywhere is refused, unless it ends between two series', () => {
    let whole = 0
    for (let length = 0; length < given.length; length++) {
      try {
        decode(given.subarray(0, length))
        whole++
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
      }
    }
    expect(whole).toBe(52)
  })

  test('random bytes and changed ones give a request or a ProtocolError', () => {
    const random = new Random(7)
    for (let round = 0; round < times({ short: 750, long: 3_000 }); round++) {
      attempt(Uint8Array.from({ length: random.below(64) }, () => random.below(256)))
      const changed = Uint8Array.from(given)
      for (let count = 1 + random.below(4); count > 0; count--)
        changed[random.below(changed.length)] = random.below(256)
      attempt(changed)
    }
  })

  test('random bytes under Snappy too', () => {
    const random = new Random(8)
    for (let round = 0; round < times({ short: 750, long: 3_000 }); round++) {
      const body = Uint8Array.from({ length: 1 + random.below(64) }, () => random.below(256))
      try {
        decompress(body, LIMITS)
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error
      }
    }
  })
})

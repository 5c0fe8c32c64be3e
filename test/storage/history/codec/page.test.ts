import { deflateRawSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { ChunkEncoder, decodeChunk } from '../../../../storage/history/codec/chunk.ts'
import {
  type HistoryPage,
  PAGE_TARGET_BYTES,
  PageWriter,
  placeOf,
  ReadPage,
  seriesAt,
} from '../../../../storage/history/codec/page.ts'
import { DamagedPage } from '../../../../storage/history/codec/varints.ts'
import { newColumns } from '../../../../storage/history/run-cursor.ts'
import { times } from '../../../support/long.ts'
import { Random } from '../../../support/random.ts'

const BASE_MS = Date.UTC(2026, 7, 31)

interface Chunk {
  readonly place: number
  readonly values: readonly number[]
}

function pagesOf(chunks: readonly Chunk[]): HistoryPage[] {
  const pages: HistoryPage[] = []
  const writer = new PageWriter((page) => pages.push(page), 'kept')
  const encoder = new ChunkEncoder()
  for (const { place, values } of chunks) {
    const at = Float64Array.from(values, (_, index) => BASE_MS + 1 + index * 1000)
    encoder.encode(writer.body, BASE_MS, { times: at, values: [Float64Array.from(values)] }, values.length)
    writer.end(place, values.length, at[0]!, at.at(-1)!)
  }
  writer.flush()
  return pages
}

function chunksOf(page: ReadPage): Chunk[] {
  return Array.from({ length: page.length }, (_, index) => {
    const columns = newColumns(1, page.counts[index]!)
    decodeChunk(page.chunk(index), BASE_MS, columns, 0, page.counts[index]!)
    return { place: page.places[index]!, values: [...columns.values[0]!] }
  })
}

const random = new Random(1)
const chunks: Chunk[] = Array.from({ length: 700 }, (_, index) => ({
  place: placeOf(1 + Math.floor(index / 100), 10 + index * 3),
  values: Array.from({ length: 1 + random.below(200) }, () => random.below(1000)),
}))

describe('pages', () => {
  const pages = pagesOf(chunks)

  it('give back their chunks, in order, and say what they have', () => {
    expect(pages.length).toBeGreaterThan(2)
    expect(pages.flatMap((page) => chunksOf(new ReadPage(page)))).toEqual(chunks)
    for (const page of pages) {
      const found = chunksOf(new ReadPage(page))
      expect(page).toMatchObject({ lo: found[0]!.place, hi: found.at(-1)!.place, from: BASE_MS + 1 })
      expect(page.samples).toBe(found.reduce((sum, { values }) => sum + values.length, 0))
      expect(page.data.length).toBeLessThan(PAGE_TARGET_BYTES * 2)
    }
  })

  it('find the chunks of a series', () => {
    const page = new ReadPage(pages[0]!)
    expect(page.find(0)).toBe(0)
    expect(page.find(page.places[5]!)).toBe(5)
    expect(page.find(page.places[5]! + 1)).toBe(6)
    expect(page.find(Number.MAX_SAFE_INTEGER)).toBe(page.length)
  })

  it('have places that are exact up to the last name and series', () => {
    const last = placeOf(2 ** 21 - 1, 2 ** 32 - 1)
    expect(last).toBe(Number.MAX_SAFE_INTEGER)
    expect(seriesAt(last)).toBe(2 ** 32 - 1)
    const [page] = pagesOf([
      { place: placeOf(1, 2 ** 32 - 1), values: [1] },
      { place: last, values: [2] },
      { place: last, values: [3] },
    ])
    expect([...new ReadPage(page!).places]).toEqual([placeOf(1, 2 ** 32 - 1), last, last])
  })

  it('are refused with anything of them changed', () => {
    const [page] = pages
    for (const key of ['lo', 'hi', 'from', 'to', 'samples', 'checksum'] as const) {
      expect(() => new ReadPage({ ...page!, [key]: page![key] + 1 })).toThrow(DamagedPage)
    }
    for (let round = 0; round < times({ short: 200, long: 2000 }); round++) {
      const data = Uint8Array.from(page!.data)
      data[random.below(data.length)]! ^= 1 << random.below(8)
      expect(() => new ReadPage({ ...page!, data })).toThrow(DamagedPage)
    }
    for (const end of [0, 1, 100, page!.data.length - 1]) {
      expect(() => new ReadPage({ ...page!, data: page!.data.subarray(0, end) })).toThrow(DamagedPage)
    }
  })
})

describe('bytes whose checksum is right', () => {
  /** A page of any bytes. */
  const made = (bytes: Uint8Array, isDeflated = true): HistoryPage => {
    const row = { lo: 1, hi: 2, from: 3, to: 4, samples: 5 }
    const data = isDeflated ? deflateRawSync(bytes) : bytes
    return { ...row, checksum: ReadPage.checksum(row, data), data }
  }

  it('end with the named error if they are none; by chance some are one', () => {
    let refused = 0
    const rounds = times({ short: 300, long: 5_000 })
    for (let round = 0; round < rounds; round++) {
      const bytes = Uint8Array.from({ length: random.below(60) }, () => random.below(random.pick([4, 256])))
      try {
        const { counts } = new ReadPage(made(bytes, round % 2 === 0))
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(5)
      } catch (error) {
        if (!(error instanceof DamagedPage)) throw error
        refused++
      }
    }
    expect(refused).toBeGreaterThan(rounds * 0.99)
  })

  it('are not inflated beyond the bound', () => {
    expect(() => new ReadPage(made(new Uint8Array(8 << 20)))).toThrow(/cannot be inflated/)
  })
})

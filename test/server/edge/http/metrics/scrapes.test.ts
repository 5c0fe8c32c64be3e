/** Scrapes: few texts at the same time, one for all who wait for the same, and a word for whoever waits for too long. */
import { beforeEach, expect, it } from 'vitest'
import { type Scraped, type ScrapeProgress, Scrapes } from '../../../../../server/edge/http/metrics/scrapes.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'

const MIB = 1 << 20
const TENANT_MS = 9_500
const ALL_MS = 5_000
const PLACE_MS = 1_000

let clock: FakeClock
let scrapes: Scrapes
/** The texts that are made, in the order in which they were begun. */
let made: {
  readonly key: string
  readonly progress: ScrapeProgress
  readonly end: (bytes?: number) => void
  readonly fail: () => void
}[]
beforeEach(() => {
  clock = new FakeClock()
  scrapes = new Scrapes(clock)
  made = []
})

interface Reader {
  readonly scraped: Promise<Scraped>
  /** It has the text, or has gone. */
  readonly end: () => void
}

function reader(tenant: string, key: string): Reader {
  const controller = new AbortController()
  const make = (progress: ScrapeProgress) =>
    new Promise<readonly Uint8Array[]>((resolve, reject) => {
      const end = (bytes = 1): void => resolve([new Uint8Array(bytes)])
      made.push({ key, progress, end, fail: () => reject(new Error('it has failed')) })
    })
  const scraped = scrapes.scrape({ tenant, key, reader: controller.signal, make })
  return { scraped, end: () => controller.abort() }
}
const neverMade = (): never => {
  throw new Error('nobody waits for it')
}
const settled = () => new Promise((resolve) => setImmediate(resolve))
const begun = () => made.map(({ key }) => key)

it('is one for all who have asked before it is begun, and the next one follows when they have it', async () => {
  const first = reader('a', 'x')
  const waiting = Array.from({ length: 300 }, () => reader('a', 'x'))
  const busy = reader('a', 'y')
  expect(begun()).toEqual(['x', 'y'])
  made[0]?.end()
  made[1]?.end()
  expect(await first.scraped).toMatchObject({ pieces: [expect.any(Uint8Array)], bytes: 1 })
  busy.end()
  await settled()
  expect(begun()).toEqual(['x', 'y'])
  first.end()
  await settled()
  expect(begun()).toEqual(['x', 'y', 'x'])
  const later = reader('a', 'x')
  made[2]?.end()
  const texts = await Promise.all(waiting.map(({ scraped }) => scraped))
  expect(new Set(texts).size).toBe(1)
  for (const one of waiting.slice(1)) one.end()
  await settled()
  expect(begun()).toHaveLength(3)
  // Whoever reads slowly holds up the others for a second.
  clock.advance(1_000)
  await settled()
  expect(begun()).toEqual(['x', 'y', 'x', 'x'])
  made[3]?.end()
  expect(await later.scraped).not.toBe(texts[0])
  expect(scrapes.refused).toBe(0)
})

it('gives its place to others of the tenant when it is read for five seconds', async () => {
  const slow = [reader('a', 'x'), reader('a', 'y')]
  for (const { end } of made) end()
  await Promise.all(slow.map(({ scraped }) => scraped))
  reader('a', 'z')
  clock.advance(4_999)
  await settled()
  expect(begun()).toEqual(['x', 'y'])
  clock.advance(1)
  await settled()
  expect(begun()).toEqual(['x', 'y', 'z'])
  for (const { end } of slow) end()
  await settled()
  expect(scrapes.refused).toBe(0)
})

it('of which a tenant has two at a time', async () => {
  const [slow, busy] = [reader('a', 'x'), reader('a', 'y')]
  const next = reader('a', 'z')
  made[0]?.end()
  await slow.scraped
  clock.advance(1_000)
  await settled()
  expect(begun()).toEqual(['x', 'y'])
  made[1]?.end()
  await busy.scraped
  busy.end()
  await settled()
  expect(begun()).toEqual(['x', 'y', 'z'])
  made[2]?.end()
  expect(await next.scraped).toMatchObject({ pieces: [expect.any(Uint8Array)] })
})

it('is refused if too many of the tenant wait, or one for too long', async () => {
  const [first] = ['1', '2'].map((key) => reader('a', key)) as [Reader, Reader]
  const waiting = Array.from({ length: 16 }, (_, index) => reader('a', `w${index}`))
  expect(await reader('a', 'one more').scraped).toEqual({ refused: 'tenant' })
  clock.advance(TENANT_MS)
  for (const { scraped } of waiting) expect(await scraped).toEqual({ refused: 'tenant' })
  expect(scrapes.refused).toBe(17)
  expect(begun()).toEqual(['1', '2'])
  // What was refused is nobody's to share.
  const next = reader('a', 'w0')
  made[0]?.end()
  first.end()
  await settled()
  made[2]?.end()
  expect(await next.scraped).toMatchObject({ pieces: [expect.any(Uint8Array)] })
})

it('waits for those of other tenants, and is refused after a while', async () => {
  const [first] = ['a', 'b', 'c', 'd'].map((tenant) => reader(tenant, tenant))
  const waiting = Array.from({ length: 20 }, (_, n) => reader(`${n}`, `${n}`))
  const gone = reader('f', 'f')
  gone.end()
  const next = reader('g', 'g')
  expect(begun()).toEqual(['a', 'b', 'c', 'd'])
  // A text that is being read is no longer made.
  made[0]?.end()
  await first?.scraped
  await settled()
  expect(begun()).toEqual(['a', 'b', 'c', 'd', '0'])
  for (let ms = 0; ms < ALL_MS; ms += PLACE_MS) {
    clock.advance(PLACE_MS)
    await settled()
  }
  expect(begun()).toEqual(['a', 'b', 'c', 'd', ...Array.from({ length: 17 }, (_, n) => `${n}`)])
  for (const late of [...waiting.slice(17), next]) expect(await late.scraped).toEqual({ refused: 'all' })
  await gone.scraped
  expect(scrapes.refused).toBe(4)
})

it('that waits for its place is not the one that goes for the bytes of others', async () => {
  const first = reader('a', '1')
  const others = ['b', 'c', 'd'].map((tenant) => reader(tenant, tenant))
  const waiting = reader('a', '2')
  expect(begun()).toEqual(['1', 'b', 'c', 'd'])
  made[0]?.progress.grownTo(513 * MIB)
  made[0]?.end()
  expect(await first.scraped).toEqual({ refused: 'memory' })
  await settled()
  made[4]?.end()
  expect(await waiting.scraped).toMatchObject({ bytes: 1 })
  for (const one of [first, waiting, ...others]) one.end()
})

it('has a bound of bytes over all: the tenant that has most loses the one that it began last', async () => {
  const [slow, last, other] = [reader('a', '1'), reader('a', '2'), reader('b', '3')]
  made[0]?.end(200 * MIB)
  const text = await slow.scraped
  if ('refused' in text) throw new Error('it was refused')
  made[1]?.progress.grownTo(300 * MIB)
  expect(made[1]?.progress.isOver()).toBe(false)
  made[2]?.progress.grownTo(14 * MIB)
  expect(made.map(({ progress }) => progress.isOver())).toEqual([false, true, false])
  made[1]?.end()
  expect(await last.scraped).toEqual({ refused: 'memory' })
  // One that is being read gives way, too.
  made[2]?.progress.grownTo(180 * MIB)
  const third = reader('c', '4')
  made[3]?.progress.grownTo(140 * MIB)
  expect(text.cut.aborted).toBe(true)
  for (const one of [slow, last, other, third]) one.end()
})

it('that fails fails for all who wait for it, and for nobody after them', async () => {
  const busy = [reader('a', 'x'), reader('a', 'y')]
  const both = [reader('a', 'x'), reader('a', 'x')]
  made[0]?.fail()
  await expect(busy[0]?.scraped).rejects.toThrow('it has failed')
  await settled()
  made[2]?.fail()
  for (const { scraped } of both) await expect(scraped).rejects.toThrow('it has failed')
  await settled()
  const next = reader('a', 'x')
  made[3]?.end()
  expect(await next.scraped).toMatchObject({ pieces: [expect.any(Uint8Array)] })
})

it('is not made when all have gone who wait for it', async () => {
  const busy = [reader('a', 'x'), reader('a', 'y')]
  const [one, other] = [reader('a', 'z'), reader('a', 'z')]
  one.end()
  other.end()
  const later = reader('a', 'z')
  for (const [place, one] of busy.entries()) {
    made[place]?.end()
    await one.scraped
    one.end()
  }
  await settled()
  expect(begun()).toEqual(['x', 'y', 'z'])
  made[2]?.end()
  expect(await later.scraped).toMatchObject({ pieces: [expect.any(Uint8Array)] })
  expect(scrapes.refused).toBe(0)
})

it('is not made for those who have gone before it was their turn, also if there is room', async () => {
  const first = reader('a', 'x')
  const gone = reader('a', 'x')
  gone.end()
  const next = reader('a', 'x')
  made[0]?.end()
  await first.scraped
  first.end()
  await settled()
  expect(begun()).toEqual(['x', 'x'])
  made[1]?.end()
  expect(await next.scraped).toMatchObject({ pieces: [expect.any(Uint8Array)] })
  expect(await scrapes.scrape({ tenant: 'a', key: 'y', reader: AbortSignal.abort(), make: neverMade })).toEqual({
    refused: 'tenant',
  })
  expect(scrapes.refused).toBe(0)
})

it('that waits for a second gives its place among all to others', async () => {
  const hanging = ['a', 'b'].flatMap((tenant) => ['x', 'y'].map((metric) => reader(tenant, `${tenant} ${metric}`)))
  const other = reader('c', 'c x')
  await settled()
  expect(begun()).toEqual(['a x', 'a y', 'b x', 'b y'])
  clock.advance(PLACE_MS)
  await settled()
  expect(begun()).toHaveLength(5)
  made[4]?.end()
  expect(await other.scraped).toMatchObject({ bytes: 1 })
  for (const [index, { scraped }] of hanging.entries()) {
    made[index]?.end()
    expect(await scraped).toMatchObject({ bytes: 1 })
  }
  expect(scrapes.refused).toBe(0)
})

/** What no fixture shows: hostile and broken text. No parser may throw, give NaN, or leave the range of its type. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AT_BOOT, type CpuTimes, parseStat, percentBetween } from '../../../../server/wings/host/cpu.ts'
import {
  parseDiskstats,
  parseLoadavg,
  parseMeminfo,
  parseMounts,
  parseNetDev,
  parseUptime,
  spaceOf,
  totalDiskIo,
  totalNetIo,
} from '../../../../server/wings/host/proc.ts'

const MAX_UINT64 = 2n ** 64n - 1n

/** Text of the words that the parsers look for, numbers of all sizes, and anything. */
const word = fc.oneof(
  fc.constantFrom('cpu', 'cpu0', 'cpu4294967296', 'btime', 'procs_running', 'MemTotal:', 'SwapFree:', 'SwapTotal:'),
  fc.constantFrom(
    'kB',
    'sda',
    'sda1',
    'nvme0c0n1',
    '|bytes',
    'packets|errs',
    'eth0:',
    ':',
    'lo:',
    '/',
    '/\\777',
    'NaN',
  ),
  fc.constantFrom('-1', '1e400', '0x10', '1.', '18446744073709551615', '18446744073709551616', '9007199254740993'),
  fc.bigInt({ min: 0n, max: 2n ** 70n }).map(String),
  fc.double().map(String),
  fc.string(),
)
const text = fc
  .array(fc.tuple(word, fc.constantFrom(' ', '  ', '\n', '\t', '')), { maxLength: 60 })
  .map((parts) => parts.flat().join(''))

describe('any text', () => {
  test.each([
    ['stat', (all: string) => [parseStat(all), percentBetween(AT_BOOT, parseStat(all).cpu.all ?? AT_BOOT)]],
    ['meminfo', parseMeminfo],
    ['loadavg', parseLoadavg],
    ['uptime', parseUptime],
    ['diskstats', (all: string) => [parseDiskstats(all), totalDiskIo(parseDiskstats(all))]],
    ['net/dev', (all: string) => [parseNetDev(all), totalNetIo(parseNetDev(all))]],
    ['mounts', parseMounts],
  ])('as %s gives numbers in range or nothing', (_, parse) => {
    fc.assert(fc.property(text, (all) => expectInRange(parse(all))))
  })

  test('percentages between any two readings lie in 0 to 100 and add up to 100', () => {
    const count = fc.option(fc.nat(), { nil: undefined })
    const times: fc.Arbitrary<CpuTimes> = fc.record({
      user: count,
      nice: count,
      system: count,
      idle: count,
      iowait: count,
      irq: count,
      softirq: count,
      steal: count,
    })
    fc.assert(
      fc.property(times, times, (before, after) => {
        const percent = percentBetween(before, after)
        if (percent === undefined) return
        const shares = Object.values(percent).map((share) => share ?? 0)
        for (const share of shares) expect(share >= 0 && share <= 100).toBe(true)
        expect(shares.reduce((sum, share) => sum + share)).toBeCloseTo(100, 6)
      }),
    )
  })
})

describe('counters at the end of their range', () => {
  test('the largest uint64 is kept, what is larger is not available', () => {
    const headings = 'a|bytes packets|bytes\n'
    expect(parseNetDev(`${headings}e: 18446744073709551615 18446744073709551616`).get('e')).toMatchObject({
      received_bytes: MAX_UINT64,
      received_packets: undefined,
    })
  })

  test('KiB and sectors that do not fit as bytes are not available', () => {
    expect(parseMeminfo('MemTotal: 18014398509481984 kB').total).toBeUndefined()
    expect(parseMeminfo('MemTotal: 18014398509481983 kB').total).toBe(MAX_UINT64 - 1023n)
    expect(parseDiskstats('8 0 sda 1 0 36028797018963968 0 0 0 0 0').get('sda')).toMatchObject({
      reads: 1n,
      read_bytes: undefined,
    })
  })

  test('a file system that claims more free than all is not believed', () => {
    const space = spaceOf({ bsize: 1n, blocks: 1n, bfree: 2n, bavail: 1n })
    expect(space).toEqual({ total: 1n, free: 1n, used: undefined })
  })
})

test('lines of meminfo that count no kB, and numbers that are none, are passed over', () => {
  const memory = parseMeminfo('MemTotal: 5\nMemFree: x kB\nCached: -1 kB\nBuffers: 1 kB\n')
  expect(memory).toMatchObject({ total: undefined, free: undefined, cached: undefined, buffers: 1024n })
})

test('swap in use is not available without both of its sides', () => {
  expect(parseMeminfo('SwapTotal: 4 kB').swap_used).toBeUndefined()
  expect(parseMeminfo('SwapTotal: 4 kB\nSwapFree: 5 kB').swap_used).toBeUndefined()
})

test('escapes in mount points are undone once', () => {
  const mounts = parseMounts('a /tab\\011x ext4\nb /back\\134040 ext4\nnone none swap\n')
  expect([...mounts.keys()]).toEqual(['/tab\tx', '/back\\040'])
})

function expectInRange(value: unknown): void {
  if (typeof value === 'number') expect(Number.isFinite(value) && value >= 0).toBe(true)
  else if (typeof value === 'bigint') expect(value >= 0n && value <= MAX_UINT64).toBe(true)
  else if (value instanceof Map) for (const entry of value) expectInRange(entry)
  else if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) expectInRange(part)
}

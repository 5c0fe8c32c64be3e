/** That the judge of a tree finds what it is there for: each of its equations fails for a defect that only it can see. */
import { expect, it } from 'vitest'
import { type Came, imbalances, type LevelAccount, type UpstreamAccount } from './balance.ts'
import type { ChannelRow } from './rows.ts'

const [OVERFLOW, RESTART, REPLACED, FULL] = [1, 5, 8, 6]
const NOTHING = { overflow: 0, superseded: 0, expired: 0, damaged: 0, purged: 0, stopped: 0, full: 0 }

interface Change {
  readonly said?: Partial<ChannelRow>
  readonly row?: Partial<ChannelRow>
  readonly upstream?: Partial<UpstreamAccount>
}

function level(name: string, row: ChannelRow, change: Change, upstream?: UpstreamAccount): LevelAccount {
  return {
    name,
    ledger: { ...row, ...change.row, ...change.said },
    rows: { channel: { ...row, ...change.row }, reached: 1_100 },
    upstream: upstream && { ...upstream, ...change.upstream },
  }
}

/** 1000 accepted below, of which 30 were dropped on a full disk and 70 by limits of the middle: 900 came. */
function run(changes: Readonly<Record<string, Change>>, came: Partial<Came> = {}, promised = 960): string[] {
  const { low = {}, mid = {}, top = {} } = changes
  const lowest = { accepted: 1_000, committed: 970, dropped: { ...NOTHING, full: 30 } }
  const middle = { accepted: 970, committed: 900, dropped: { ...NOTHING, overflow: 70 } }
  const uppermost = { accepted: 900, committed: 900, dropped: NOTHING }
  const upstream = { values: 500, repeated: 20, committed: 1_100, acceptedBefore: 470 }
  const levels = [
    level('low', lowest, low),
    level('mid', middle, mid, upstream),
    level('top', uppermost, top, { ...upstream, values: 900, acceptedBefore: 0 }),
  ]
  const gaps = new Map([
    [FULL, { gaps: 2, values: 30 }],
    [OVERFLOW, { gaps: 3, values: 70 }],
    [RESTART, { gaps: 4, values: 0 }],
  ])
  return imbalances(levels, { values: 900, unanswered: 0, gaps, ...came }, promised)
}

it('finds nothing where all is equal', () => {
  expect(run({})).toEqual([])
  // Nothing came in the last life, and nothing was committed below in it.
  const idle = { values: 0, repeated: 0, committed: 0, acceptedBefore: 970 }
  expect(run({ mid: { upstream: idle } })).toEqual([])
  // One was sent by the lowest, and forgotten there by a kill before it had a yes.
  const more = { row: { accepted: 971, committed: 901 }, upstream: { values: 501 } }
  const last = { row: { accepted: 901, committed: 901 }, upstream: { values: 901 } }
  expect(run({ mid: more, top: last }, { values: 901, unanswered: 1 })).toEqual([])
  // One was dropped whose COMMIT had been lost.
  const one = { row: { accepted: 901, committed: 901 }, upstream: { values: 901 } }
  expect(run({ top: one }, { values: 901 })).toEqual([])
})

it.each<[string, Parameters<typeof run>, string[]]>([
  [
    'a value that was lost between two levels',
    [
      {
        mid: { row: { accepted: 969, committed: 899 }, upstream: { values: 499 } },
        top: { row: { accepted: 899, committed: 899 }, upstream: { values: 899 } },
      },
      { values: 899 },
    ],
    ['low to mid: committed below: 970, accepted above: 969'],
  ],
  [
    'a value that was taken twice',
    [
      {
        mid: { row: { accepted: 971, committed: 901 }, upstream: { values: 501 } },
        top: { row: { accepted: 901, committed: 901 }, upstream: { values: 901 } },
      },
      { values: 901 },
    ],
    ['low to mid: committed below: 970, accepted above: 971'],
  ],
  [
    'more values that were taken than were committed and dropped',
    [{ top: { row: { accepted: 971, committed: 971 }, upstream: { values: 971 } } }, { values: 971 }],
    ['mid to top: committed below: 900, accepted above: 971'],
  ],
  [
    'less reported than was dropped and had not come',
    [
      { top: { row: { accepted: 901, committed: 901 }, upstream: { values: 901 } } },
      {
        values: 901,
        gaps: new Map([
          [FULL, { gaps: 1, values: 30 }],
          [OVERFLOW, { gaps: 1, values: 68 }],
        ]),
      },
    ],
    ['dropped as overflow at any level: 70, reported at the uppermost: 68'],
  ],
  [
    'a value that a channel has forgotten',
    [{ low: { row: { accepted: 1_001 } } }],
    ['low: accepted: 1001, committed and dropped: 1000'],
  ],
  [
    'what is said and not stored',
    [{ mid: { said: { accepted: 971, committed: 901, dropped: { ...NOTHING, overflow: 71 } } } }],
    [
      'mid: accepted, it says: 971, stored: 970',
      'mid: committed, it says: 901, stored: 900',
      'mid: dropped as overflow, it says: 71, stored: 70',
    ],
  ],
  [
    'a counter of values that counts a repeat',
    [{ mid: { upstream: { values: 501 } } }],
    ['mid: values taken in its last life: 501, accepted in it: 500'],
  ],
  [
    'a COMMIT of more than is stored',
    [{ mid: { upstream: { committed: 1_101 } } }],
    ['mid: the last id committed below: 1101, the one that is stored: 1100'],
  ],
  [
    'a value that was committed and did not come',
    [{}, { values: 899 }],
    ['committed by the consumer: 900, came there: 899'],
  ],
  ['a yes to what was not accepted', [{}, {}, 1_001], ['answered with a yes: 1001, accepted by the lowest: 1000']],
  [
    'losses that are not reported, are reported as fewer, or without a count',
    [{}, { gaps: new Map([[OVERFLOW, { gaps: 1, values: 69 }]]) }],
    [
      'dropped as overflow at any level: 70, reported at the uppermost: 69',
      'dropped as full at any level: 30, reported at the uppermost: 0',
    ],
  ],
  [
    'GAPs for which nobody has dropped anything',
    [
      {},
      {
        gaps: new Map([
          [FULL, { gaps: 1, values: 30 }],
          [OVERFLOW, { gaps: 1, values: 70 }],
          [RESTART, { gaps: 1, values: 2 }],
          [REPLACED, { gaps: 1, values: 0 }],
        ]),
      },
    ],
    [
      '1 GAPs of reason 5 report 2 values that nobody has dropped',
      '1 GAPs of reason 8 report 0 values that nobody has dropped',
    ],
  ],
])('finds %s', (_, defect, problems) => {
  expect(run(...defect)).toEqual(problems)
})

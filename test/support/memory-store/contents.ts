/** What a store in memory holds, and how it is given back. */
import { declarationOf, ROW_KINDS, type RowKind, type RowOf } from '../../../storage/rows.ts'
import type { Recovered, RecoveredRows } from '../../../storage/store.ts'

export interface StoredBlock {
  /** BLOCK_WIDTH numbers, offset 0. */
  readonly row: number[]
  readonly bytes: Uint8Array
}

export interface Contents {
  /** By their keys, in the order in which they were stored. */
  readonly rows: { readonly [Kind in RowKind]: Map<string, RowOf<Kind>> }
  /** The ids that are given next. */
  readonly next: Record<'next_user' | 'next_rule' | 'next_token' | 'next_board', number>
  readonly numbers: Map<number, number[]>
  readonly blocks: Map<number, StoredBlock>
  readonly settled: Map<number, Uint8Array>
  readonly gaps: Map<number, number[]>
  /** Ids of blocks that a read finds damaged. */
  readonly damaged: Set<number>
  readonly secret: Uint8Array
  readonly generation: string
  /** The last record of the audit log, whether or not it is there still. */
  audited: Recovered['audited']
  nextBlockId: number
  age: number
  wall: number
}

export function emptyContents(): Contents {
  return {
    rows: Object.fromEntries(ROW_KINDS.map((kind) => [kind, new Map()])) as unknown as Contents['rows'],
    next: { next_user: 1, next_rule: 1, next_token: 1, next_board: 1 },
    numbers: new Map(),
    blocks: new Map(),
    settled: new Map(),
    gaps: new Map(),
    damaged: new Set(),
    secret: crypto.getRandomValues(new Uint8Array(32)),
    generation: '6d656d6f72790001',
    audited: undefined,
    nextBlockId: 1,
    age: 0,
    wall: 0,
  }
}

export function recovered(contents: Contents): Recovered {
  const copy = structuredClone(contents)
  const { rows, next, secret, generation, audited, nextBlockId, age, wall, settled } = copy
  const byOrder = (a: number[], b: number[]): number => a[1]! - b[1]! || a[2]! - b[2]! || a[3]! - b[3]! || a[0]! - b[0]!
  const blocks = [...copy.blocks.values()].map(({ row }) => row)
  const flat = (rows: number[][]): Float64Array => Float64Array.from(rows.flat())
  return {
    ...recoveredRows(rows),
    fences: [...rows.fence.values()].map(({ sensor }) => sensor).sort(),
    qmfAgent: [...rows['qmf agent'].values()][0],
    audited,
    numbers: flat([...copy.numbers.values()].sort((a, b) => a[0]! - b[0]!)),
    blocks: flat(blocks.sort(byOrder)),
    gaps: flat([...copy.gaps.values()].sort(byOrder)),
    settled,
    nextUserId: next.next_user,
    nextRule: next.next_rule,
    nextTokenId: next.next_token,
    nextBoardId: next.next_board,
    nextBlockId,
    age,
    wall,
    secret,
    generation,
    restored: false,
  }
}

function recoveredRows(rows: Contents['rows']): RecoveredRows {
  const lists = ROW_KINDS.flatMap((kind) => {
    const { recoveredAs, key, order = key } = declarationOf(kind)
    const all: object[] = [...rows[kind].values()]
    if (order !== 'stored') all.sort((a, b) => compare(a, b, order))
    return recoveredAs === undefined ? [] : [[recoveredAs, all] as const]
  })
  return Object.fromEntries(lists) as unknown as RecoveredRows
}

function compare(a: object, b: object, columns: readonly string[]): number {
  for (const column of columns) {
    const [one, other] = [a, b].map((row) => row[column as keyof object] as number | string)
    if (one !== other) return one! < other! ? -1 : 1
  }
  return 0
}

/** What tells a row from the others of its kind. */
export function keyOf(kind: RowKind, row: object): string {
  return columnsText(row, declarationOf(kind).key)
}

/** What these columns of a row hold. */
export function columnsText(row: object, columns: readonly string[]): string {
  return JSON.stringify(columns.map((column) => row[column as keyof object]))
}

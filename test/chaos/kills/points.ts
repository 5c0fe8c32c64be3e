/** The named failpoints of failpoints.cjs, and what leads to each. */
import type { Deed } from './life.ts'

interface Point {
  readonly name: string
  readonly deed: Deed
  /** Killed at one of the first so many times. */
  readonly within: number
}

const point = (name: string, deed: Deed, within = 1): Point => ({ name, deed, within })

export const POINTS: readonly Point[] = [
  point('before-insert', 'nothing', 40),
  point('inserted-not-committed', 'nothing', 20),
  point('committed-not-told', 'nothing', 20),
  point('response-not-written', 'commit', 20),
  point('half-a-commit-batch', 'commit', 10),
  point('checkpoint', 'rest'),
  point('overflow-gap', 'nothing', 3),
  point('half-the-copies', 'copy', 2),
  point('copies-not-committed', 'copy', 2),
  point('channel-defined', 'copy', 2),
  point('channel-half-deleted', 'delete', 2),
  point('swap-not-told', 'swap', 3),
  point('swap-not-stored', 'swap', 3),
  point('swap-stored', 'swap', 3),
  point('range-not-reserved', 'nothing', 3),
  point('range-reserved', 'nothing', 3),
  point('half-released', 'get', 3),
  point('execute-announced', 'execute', 2),
  point('result-not-stored', 'execute', 2),
  point('recovery-reading', 'nothing'),
  point('recovery-storing', 'nothing'),
  point('recovery-stored', 'nothing'),
]

/** Killed there, and when it is started again killed there again. */
export function isOfRecovery(name: string): boolean {
  return name.startsWith('recovery-')
}

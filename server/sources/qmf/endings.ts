/** The end of an object: a broker tells its last properties first, which end it, and its last statistics behind them. */
import type { QmfMessage } from '../../../protocol/qmf/types.ts'

/** The same messages; of an object that is deleted the statistics come before the end. */
export function endsLast(messages: readonly QmfMessage[]): readonly QmfMessage[] {
  const ordered = [...messages]
  for (let at = 1; at < ordered.length; at++) {
    const [end, last] = [ordered[at - 1], ordered[at]]
    if (end?.op !== 'c' || last?.op !== 'i' || end.header.deleted === 0n || end.header.id !== last.header.id) continue
    ordered[at - 1] = last
    ordered[at] = end
  }
  return ordered
}
